// The text of a program of an edge function.
#include "omp/program_text.hpp"

#include "omp/edge_program.hpp"

#include <unordered_map>

namespace wl {

namespace {

const std::unordered_map<std::string_view, EdgeCode> kCodes = {
    {"score", EdgeCode::score},
    {"row", EdgeCode::row},
    {"column", EdgeCode::column},
    {"number", EdgeCode::number},
    {"of_row", EdgeCode::of_row},
    {"of_column", EdgeCode::of_column},
    {"of_entry", EdgeCode::of_entry},
    {"add", EdgeCode::add},
    {"sub", EdgeCode::sub},
    {"mul", EdgeCode::mul},
    {"div", EdgeCode::div},
    {"floordiv", EdgeCode::floordiv},
    {"mod", EdgeCode::mod},
    {"minimum", EdgeCode::minimum},
    {"maximum", EdgeCode::maximum},
    {"lt", EdgeCode::lt},
    {"le", EdgeCode::le},
    {"gt", EdgeCode::gt},
    {"ge", EdgeCode::ge},
    {"eq", EdgeCode::eq},
    {"ne", EdgeCode::ne},
    {"and", EdgeCode::both},
    {"or", EdgeCode::either},
    {"not", EdgeCode::opposite},
    {"where", EdgeCode::where},
    {"neg", EdgeCode::neg},
    {"cast", EdgeCode::cast},
    {"abs", EdgeCode::abs},
    {"exp", EdgeCode::exp},
    {"log", EdgeCode::log},
    {"log1p", EdgeCode::log1p},
    {"tanh", EdgeCode::tanh},
    {"sqrt", EdgeCode::sqrt},
    {"sin", EdgeCode::sin},
    {"cos", EdgeCode::cos},
};

bool is_comparison(EdgeCode code) { return code >= EdgeCode::lt && code <= EdgeCode::ne; }

} // namespace

std::shared_ptr<const EdgeProgramText> EdgeProgramText::parse(const std::string& text) {
  const auto made = std::make_shared<EdgeProgramText>();
  std::string_view lines(text), words = next_of(lines, ';');
  made->is_softmax = next_of(words, ' ') == "softmax";
  for (i64* const inputs : {&made->rows, &made->columns, &made->entries})
    *inputs = integer_of(next_of(words, ' '));
  for (words = next_of(lines, ';'); !words.empty();)
    made->outputs.push_back(integer_of(next_of(words, ' ')));
  std::vector<bool> is_index;
  while (!lines.empty()) {
    words = next_of(lines, ';');
    const std::string kind(next_of(words, ' '));
    const auto found = kCodes.find(kind);
    if (found == kCodes.end())
      refuse_program("there is no instruction " + kind);
    const bool is_integer = next_of(words, ' ') == "index";
    EdgeInstruction one{found->second, is_integer, {0, 0, 0}, number_of(next_of(words, ' '))};
    const i64 here = i64(made->instructions.size());
    for (int count = 0; !words.empty(); ++count) {
      const i64 part = integer_of(next_of(words, ' '));
      if (count == 3 || part < 0 || part >= here)
        refuse_program("an operand of " + kind + " is not computed before");
      one.parts[count] = part;
    }
    const i64 inputs = one.code == EdgeCode::of_row      ? made->rows
                       : one.code == EdgeCode::of_column ? made->columns
                       : one.code == EdgeCode::of_entry  ? made->entries
                                                         : -1;
    if (inputs >= 0 && !(one.number >= 0 && one.number < double(inputs)))
      refuse_program("it has no " + kind + " of that number");
    is_index.push_back(one.is_index);
    if (is_comparison(one.code))
      one.is_index = is_index[one.parts[0]];
    made->instructions.push_back(one);
  }
  for (const i64 at : made->outputs)
    if (at < 0 || at >= i64(made->instructions.size()) || is_index[at])
      refuse_program("an output is no number of an instruction");
  return made;
}

} // namespace wl
