// The text of a program of an edge function, read.
#include "edge_program.hpp"

#include <sstream>
#include <stdexcept>
#include <unordered_map>

namespace wl {

namespace {

const std::unordered_map<std::string, EdgeCode> kCodes = {
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

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument("function: expected the text of a program; " + why);
}

bool is_comparison(EdgeCode code) { return code >= EdgeCode::lt && code <= EdgeCode::ne; }

} // namespace

std::shared_ptr<const EdgeProgramText> EdgeProgramText::parse(const std::string& text) {
  const auto made = std::make_shared<EdgeProgramText>();
  std::istringstream lines(text);
  std::string line, final;
  std::getline(lines, line, ';');
  std::istringstream head(line);
  if (!(head >> final >> made->rows >> made->columns >> made->entries))
    refuse("its first line has a function and three numbers");
  made->is_softmax = final == "softmax";
  std::getline(lines, line, ';');
  std::istringstream outputs(line);
  for (i64 at; outputs >> at;)
    made->outputs.push_back(at);
  std::vector<bool> is_index;
  while (std::getline(lines, line, ';')) {
    std::istringstream words(line);
    std::string kind, type, number;
    words >> kind >> type >> number;
    const auto found = kCodes.find(kind);
    if (found == kCodes.end())
      refuse("there is no instruction " + kind);
    // a stream reads neither inf nor nan
    EdgeInstruction one{
        found->second, type == "index", {0, 0, 0}, std::strtod(number.c_str(), nullptr)};
    const i64 here = i64(made->instructions.size());
    int count = 0;
    for (i64 part; words >> part; ++count) {
      if (count == 3 || part < 0 || part >= here)
        refuse("an operand of " + kind + " is not computed before");
      one.parts[count] = part;
    }
    const i64 inputs = one.code == EdgeCode::of_row      ? made->rows
                       : one.code == EdgeCode::of_column ? made->columns
                       : one.code == EdgeCode::of_entry  ? made->entries
                                                         : -1;
    if (inputs >= 0 && !(one.number >= 0 && one.number < double(inputs)))
      refuse("it has no " + kind + " of that number");
    is_index.push_back(one.is_index);
    if (is_comparison(one.code))
      one.is_index = is_index[one.parts[0]];
    made->instructions.push_back(one);
  }
  for (const i64 at : made->outputs)
    if (at < 0 || at >= i64(made->instructions.size()) || is_index[at])
      refuse("an output is no number of an instruction");
  return made;
}

} // namespace wl
