// The entries of steps that the build did not know.
#include "omp/program_text.hpp"

#include "omp/step_program.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "omp/capsule.hpp"
#include "omp/operand.hpp"
#include "omp/step_loops.hpp"

namespace wl {

namespace {

constexpr const char* kCapsule = "step program";

const std::unordered_map<std::string_view, StepCode> kCodes = {
    {"add", StepCode::add},
    {"sub", StepCode::sub},
    {"mul", StepCode::mul},
    {"div", StepCode::div},
    {"lt", StepCode::lt},
    {"le", StepCode::le},
    {"gt", StepCode::gt},
    {"ge", StepCode::ge},
    {"eq", StepCode::eq},
    {"ne", StepCode::ne},
    {"both", StepCode::both},
    {"either", StepCode::either},
    {"not", StepCode::opposite},
    {"where", StepCode::where},
    {"neg", StepCode::neg},
    {"copy", StepCode::copy},
    {"square_root", StepCode::square_root},
    {"conj", StepCode::conj},
    {"real", StepCode::real},
    {"magnitude", StepCode::magnitude},
    {"finite", StepCode::finite},
    {"square", StepCode::square},
    {"cast", StepCode::cast},
    {"add_product", StepCode::add_product},
    {"sub_product", StepCode::sub_product},
    {"sum", StepCode::sum},
    {"sum_of_products", StepCode::sum_of_products},
    {"sum_of_squares", StepCode::sum_of_squares},
    {"largest", StepCode::largest},
    {"scalars", StepCode::scalars},
    {"reals", StepCode::reals},
    {"flags", StepCode::flags},
    {"numbers", StepCode::numbers},
    {"number", StepCode::number},
    {"epsilon", StepCode::epsilon},
    {"threshold", StepCode::threshold},
    {"total", StepCode::total},
};

const std::unordered_map<std::string_view, StepKind> kKinds = {
    {"vectors", StepKind::vectors}, {"rows", StepKind::rows},   {"scalars", StepKind::scalars},
    {"reals", StepKind::reals},     {"flags", StepKind::flags}, {"numbers", StepKind::numbers},
    {"status", StepKind::status},
};

template <class V>
V known(const std::unordered_map<std::string_view, V>& of, std::string_view word) {
  const auto found = of.find(word);
  if (found == of.end())
    refuse_program("'" + std::string(word) + "' is none of its words");
  return found->second;
}

bool is_sum(StepCode code) { return code >= StepCode::sum && code <= StepCode::largest; }
bool is_load(StepCode code) { return code >= StepCode::scalars; }

// Reads the next part of a text: calls `read` with the words of each of its items.
template <class Read>
void read_part(std::string_view& rest, const Read& read) {
  for (std::string_view items = next_of(rest, ';'); !items.empty();)
    read(next_of(items, ','));
}

StepOperand operand_of(std::string_view word) {
  const auto place = word.substr(0, 1);
  const int at = static_cast<int>(integer_of(word.substr(std::min<std::size_t>(1, word.size()))));
  if (place == "p")
    return {StepPlace::PARAMETER, at};
  if (place == "e")
    return {StepPlace::ELEMENT, at};
  if (place == "c")
    return {StepPlace::COLUMN, at};
  refuse_program("'" + std::string(word) + "' is no operand");
}

StepInstruction instruction_of(std::string_view words) {
  const std::string_view name = next_of(words, ' ');
  StepInstruction one{};
  one.squares = -1;
  one.is_complex = name.substr(0, 1) == "T";
  one.code = known(kCodes, name.substr(std::min<std::size_t>(2, name.size())));
  one.to = static_cast<int>(integer_of(next_of(words, ' ')));
  while (!words.empty()) {
    const std::string_view word = next_of(words, ' ');
    if (one.code == StepCode::number || one.code == StepCode::total)
      one.number = number_of(word);
    else if (one.operands == 3)
      refuse_program("an instruction has four operands");
    else
      one.parts[one.operands++] = operand_of(word);
  }
  return one;
}

void add_stores(std::string_view& rest, std::vector<StepStore>& stores) {
  read_part(rest, [&](std::string_view words) {
    const int parameter = static_cast<int>(integer_of(next_of(words, ' ')));
    stores.push_back({parameter, operand_of(words).at, {}});
  });
}

// Joins a product that is added with the sum of the squares of its results, if that comes next.
void join_squares(std::vector<StepInstruction>& elements) {
  std::vector<StepInstruction> joined;
  for (const StepInstruction& one : elements) {
    const bool follows = one.code == StepCode::sum_of_squares && !joined.empty() &&
                         one.parts[0].place == StepPlace::ELEMENT;
    if (follows && is_fused(joined.back().code) && joined.back().squares < 0 &&
        joined.back().to == one.parts[0].at)
      joined.back().squares = one.to;
    else
      joined.push_back(one);
  }
  elements = std::move(joined);
}

// Whether no result and no parameter is read by a second instruction.
bool streams(const std::vector<StepInstruction>& elements) {
  std::vector<int> read;
  for (const StepInstruction& one : elements) {
    std::vector<int> own;
    for (int i = 0; i < one.operands; ++i) {
      if (one.parts[i].place == StepPlace::ELEMENT)
        return false;
      if (one.parts[i].place == StepPlace::PARAMETER) {
        if (std::find(read.begin(), read.end(), one.parts[i].at) != read.end())
          return false;
        own.push_back(one.parts[i].at);
      }
      // A value that is repeated for all elements has the length of one chunk.
      if (one.parts[i].place == StepPlace::COLUMN && !takes_single(one.code, i))
        return false;
    }
    read.insert(read.end(), own.begin(), own.end());
  }
  return true;
}

// Notes the parameters that are read after the register of each store was computed.
void find_later_reads(StepText& text) {
  for (StepStore& store : text.stores) {
    bool is_known = false;
    for (const StepInstruction& one : text.elements) {
      if (is_known)
        for (int i = 0; i < one.operands; ++i)
          if (one.parts[i].place == StepPlace::PARAMETER)
            store.read_later.push_back(one.parts[i].at);
      is_known = is_known || (!is_sum(one.code) && one.to == store.from);
    }
  }
}

} // namespace

StepText StepText::parse(const std::string& words) {
  StepText made;
  std::string_view rest(words);
  read_part(rest, [&](std::string_view item) {
    const StepKind kind = known(kKinds, next_of(item, ' '));
    made.parameters.push_back({kind, item == "out" || item == "inout"});
  });
  for (auto* const list : {&made.elements, &made.before, &made.after})
    read_part(rest, [&](std::string_view item) { list->push_back(instruction_of(item)); });
  add_stores(rest, made.stores);
  add_stores(rest, made.finishing);
  read_part(rest, [&](std::string_view item) {
    made.sums.push_back(item == "T"   ? StepSum::COMPLEX
                        : item == "R" ? StepSum::REAL
                                      : StepSum::LARGEST);
  });
  read_part(rest, [&](std::string_view item) {
    const std::string_view kind = next_of(item, ' ');
    const auto why = static_cast<stop_code>(integer_of(next_of(item, ' ')));
    made.events.push_back({kind == "begin"     ? StepEvent::BEGIN
                           : kind == "observe" ? StepEvent::OBSERVE
                                               : StepEvent::HALT,
                           why, operand_of(item).at});
  });
  for (const StepInstruction& one : made.elements) {
    if (!is_sum(one.code))
      made.registers = std::max(made.registers, one.to + 1);
    for (int i = 0; i < one.operands; ++i)
      if (one.parts[i].place == StepPlace::PARAMETER)
        made.parameters.at(one.parts[i].at).is_loaded = true;
  }
  for (auto* const list : {&made.before, &made.after})
    for (const StepInstruction& one : *list)
      made.columns = std::max(made.columns, one.to + 1);
  join_squares(made.elements);
  made.is_streamed = streams(made.elements);
  find_later_reads(made);
  return made;
}

namespace {

// An argument as bytes; a number has its value in `number`.
template <class T>
struct StepArgument {
  std::byte* data;
  i64 ld;
  T number;

  template <class V>
  V* of() const {
    return reinterpret_cast<V*>(data);
  }
};

// Bytes of the elements that an instruction works on: all operands stay in the first-level cache.
constexpr i64 kChunkBytes = 8192;
// Adjacent columns that are worked on together.
constexpr i64 kStripColumns = 64;
// Distance of registers, not a multiple of a page: loads would wait for stores to the same offset.
constexpr i64 kRegisterBytes = kChunkBytes + 192;

template <class T>
class StepWork {
public:
  using R = real_t<T>;

  StepWork(std::shared_ptr<const StepProgram> program, const Call& call)
      : program_(std::move(program)), text_(text_of(*program_)) {
    Extent n, k;
    for (std::size_t at = 0; at < text_->parameters.size(); ++at)
      arguments_.push_back(argument_of(call, static_cast<int>(at), n, k));
    rows_ = n, columns_ = k;
    slots_ = call.slots<R>(k);
    for (const StepStore& store : text_->stores)
      is_direct_.push_back(can_be_direct(store));
  }

  i64 elements() const { return rows_ * columns_; }

  void operator()(int threads) const {
    Scratch<u8> active = active_columns();
    const i64 running = std::count(active.data(), active.data() + columns_, u8(1));
    if (running == 0)
      return;
    Scratch<T> values(text_->columns * columns_);
    run_columns(text_->before, values.data(), nullptr);
    const bool visits = slots_.half != Half::FINISHING;
    const int parts = !visits || elements() < kSerialElements ? 1 : threads;
    const i64 of_part = i64(text_->sums.size()) * columns_;
    Scratch<T> totals(parts * of_part);
    if (visits)
      for_parts(parts, [&](int part) {
        const Share share(rows_, part, parts);
        for (i64 c = 0; c < columns_; c += kStripColumns)
          Strip(*this, c, active.data(), values.data())
              .visit(share.begin, share.end, totals.data() + part * of_part);
      });
    finish(active.data(), values.data(), totals.data(), parts);
  }

private:
  class Strip;

  std::shared_ptr<const StepProgram> program_;
  const StepText* text_;
  std::vector<StepArgument<T>> arguments_;
  std::vector<u8> is_direct_; // whether a store's register may be the memory of its parameter
  status_of<T> status_{};
  bool has_status_ = false;
  i64 rows_ = 0, columns_ = 0;
  Slots slots_;

  static const StepText* text_of(const StepProgram& program) {
    return same<T, R>::value ? &program.of_real : &program.of_complex;
  }

  StepArgument<T> argument_of(const Call& call, int at, Extent& n, Extent& k) {
    const StepParameter& parameter = text_->parameters[at];
    const int place = at + 1; // after the program
    const auto block = [&](auto value) -> StepArgument<T> {
      using V = decltype(value);
      const auto read = call.block<std::remove_pointer_t<V>>(place, n, k);
      return {reinterpret_cast<std::byte*>(const_cast<T*>(read.data)), read.ld, T(0)};
    };
    const auto of_columns = [&](auto value) -> StepArgument<T> {
      using V = std::remove_pointer_t<decltype(value)>;
      V* const read = parameter.writes ? call.contiguous<V>(place, k)
                                       : const_cast<V*>(call.contiguous<const V>(place, k));
      return {reinterpret_cast<std::byte*>(read), 1, T(0)};
    };
    switch (parameter.kind) {
    case StepKind::vectors:
      return parameter.writes ? block(static_cast<T*>(nullptr))
                              : block(static_cast<const T*>(nullptr));
    case StepKind::rows: {
      T* const read = const_cast<T*>(call.contiguous<const T>(place, n));
      return {reinterpret_cast<std::byte*>(read), 1, T(0)};
    }
    case StepKind::scalars:
      return of_columns(static_cast<T*>(nullptr));
    case StepKind::reals:
      return of_columns(static_cast<R*>(nullptr));
    case StepKind::flags:
      return of_columns(static_cast<u8*>(nullptr));
    case StepKind::numbers:
      return {nullptr, 0, call.scalar<T>(place)};
    default:
      status_ = call.status<T>(place, k);
      has_status_ = true;
      return {nullptr, 0, T(0)};
    }
  }

  bool overlap(int one, int other) const {
    const auto end = [&](int at) {
      const i64 last = rows_ > 0 ? (rows_ - 1) * arguments_[at].ld + columns_ : 0;
      return arguments_[at].data + last * i64(sizeof(T));
    };
    return arguments_[one].data < end(other) && arguments_[other].data < end(one);
  }

  // Whether the elements of a parameter may be written before the last instruction of a chunk.
  bool can_be_direct(const StepStore& store) const {
    for (const int at : store.read_later)
      if (text_->parameters[at].kind == StepKind::vectors && overlap(store.parameter, at))
        return false;
    for (const StepStore& other : text_->stores)
      if (&other != &store && overlap(store.parameter, other.parameter))
        return false;
    return arguments_[store.parameter].ld == columns_;
  }

  Scratch<u8> active_columns() const {
    Scratch<u8> active(columns_);
    for (i64 c = 0; c < columns_; ++c)
      active.data()[c] = !has_status_ || status_.is_running(c) ? 1 : 0;
    return active;
  }

  // Instructions on columns: register r of all of them is at values + r * columns.
  void run_columns(const std::vector<StepInstruction>& list, T* values, const T* totals) const {
    for (const StepInstruction& one : list) {
      T* const to = values + one.to * columns_;
      if (is_load(one.code)) {
        load(one, to, totals);
        continue;
      }
      StepSource parts[3];
      for (int i = 0; i < one.operands; ++i)
        parts[i].data = reinterpret_cast<const std::byte*>(values + one.parts[i].at * columns_);
      run_operator<R>(one, columns_, to, parts);
    }
  }

  void load(const StepInstruction& one, T* to, const T* totals) const {
    R* const real_to = reinterpret_cast<R*>(to);
    const StepArgument<T>& from = arguments_[one.operands > 0 ? one.parts[0].at : 0];
    switch (one.code) {
    case StepCode::scalars:
      std::copy_n(from.template of<const T>(), columns_, to);
      break;
    case StepCode::reals:
      std::copy_n(from.template of<const R>(), columns_, real_to);
      break;
    case StepCode::flags:
      for (i64 c = 0; c < columns_; ++c)
        real_to[c] = from.template of<const u8>()[c] != 0 ? R(1) : R(0);
      break;
    case StepCode::numbers:
      std::fill_n(to, columns_, from.number);
      break;
    case StepCode::number:
      std::fill_n(real_to, columns_, static_cast<R>(one.number));
      break;
    case StepCode::epsilon:
      std::fill_n(real_to, columns_, epsilon<T>);
      break;
    case StepCode::threshold:
      std::copy_n(status_.threshold, columns_, real_to);
      break;
    default: {
      const i64 sum = static_cast<i64>(one.number);
      const T* const total = totals + sum * columns_;
      if (text_->sums[sum] == StepSum::COMPLEX)
        std::copy_n(total, columns_, to);
      else
        std::copy_n(reinterpret_cast<const R*>(total), columns_, real_to);
    }
    }
  }

  // Calls use(typed) with the sums of one number, as the type in which they are added up.
  template <class Use>
  static void typed(StepSum sum, T* numbers, const Use& use) {
    if (sum == StepSum::COMPLEX)
      use(numbers);
    else if (sum == StepSum::LARGEST)
      use(reinterpret_cast<maximum<R>*>(numbers));
    else
      use(reinterpret_cast<R*>(numbers));
  }

  void finish(const u8* active, T* values, T* totals, int parts) const {
    const i64 of_part = i64(text_->sums.size()) * columns_;
    i64 word = 0;
    for (std::size_t s = 0; s < text_->sums.size(); ++s)
      typed(text_->sums[s], totals + s * columns_, [&](auto* total) {
        using S = std::remove_pointer_t<decltype(total)>;
        for (int part = 1; part < parts; ++part) {
          const S* const more = reinterpret_cast<const S*>(totals + part * of_part + s * columns_);
          for (i64 c = 0; c < columns_; ++c)
            total[c] += more[c];
        }
        if (slots_.half != Half::WHOLE)
          for (i64 c = 0; c < columns_; ++c)
            if (active[c])
              exchange(total[c], c, word);
        word += same<S, complex<R>>::value ? 2 : 1;
      });
    if (slots_.half == Half::VISITING)
      return;
    run_columns(text_->after, values, totals);
    for (const StepStore& store : text_->finishing)
      save(store, active, values + store.from * columns_);
    for (i64 c = 0; c < columns_; ++c)
      if (active[c])
        tell(c, values);
  }

  // Writes the sum of a column to the slots, or reads the group's from there.
  template <class S>
  void exchange(S& total, i64 c, i64 word) const {
    each_number(total, [&](R& number) {
      R& slot = static_cast<R*>(slots_.numbers)[word++ * columns_ + c];
      (slots_.half == Half::VISITING ? slot : number) =
          slots_.half == Half::VISITING ? number : slot;
    });
  }

  void save(const StepStore& store, const u8* active, const T* values) const {
    const StepArgument<T>& to = arguments_[store.parameter];
    const R* const real_values = reinterpret_cast<const R*>(values);
    const StepKind kind = text_->parameters[store.parameter].kind;
    for (i64 c = 0; c < columns_; ++c) {
      if (!active[c])
        continue;
      if (kind == StepKind::scalars)
        to.template of<T>()[c] = values[c];
      else if (kind == StepKind::reals)
        to.template of<R>()[c] = real_values[c];
      else
        to.template of<u8>()[c] = real_values[c] != R(0) ? 1 : 0;
    }
  }

  void tell(i64 c, const T* values) const {
    for (const StepEvent& event : text_->events) {
      const R value = reinterpret_cast<const R*>(values + event.from * columns_)[c];
      if (event.kind == StepEvent::BEGIN)
        status_.begin(c, value);
      else if (event.kind == StepEvent::OBSERVE)
        status_.observe(c, value);
      else if (value != R(0) && status_.is_running(c))
        status_.halt(c, event.why);
    }
  }
};

// Up to kStripColumns adjacent columns. Chunks of their rows are read as one list of elements.
template <class T>
class StepWork<T>::Strip {
public:
  Strip(const StepWork& work, i64 first, const u8* active, const T* values)
      : work_(work), text_(*work.text_), first_(first),
        width_(std::min(kStripColumns, work.columns_ - first)), is_whole_(width_ == work.columns_),
        active_(active + first), values_(values), steps_(text_.elements.size()),
        results_(text_.registers) {
    const i64 running = std::count(active_, active_ + width_, u8(1));
    all_ = running == width_;
    none_ = running == 0;
    const i64 together = (detail::kLanes + width_ - 1) / width_; // rows of a period
    period_ = together * width_;
    rows_ = std::max<i64>(1, kChunkBytes / i64(sizeof(T)) / period_) * together;
    const i64 parameters = i64(text_.parameters.size());
    memory_ = workspace<std::byte>(
        0,
        (text_.registers + parameters + text_.columns + i64(text_.sums.size())) * kRegisterBytes);
    copies_ = memory_ + text_.registers * kRegisterBytes;
    expanded_ = copies_ + parameters * kRegisterBytes;
    sums_ = expanded_ + text_.columns * kRegisterBytes;
  }

  void visit(i64 begin, i64 end, T* totals) {
    if (none_)
      return;
    bind();
    for (std::size_t s = 0; s < text_.sums.size(); ++s)
      std::memset(sums_ + s * kRegisterBytes, 0, period_ * sizeof(T));
    const i64 together = is_streamed() ? std::max<i64>(1, end - begin) : rows_;
    for (i64 row = begin; row < end; row += together)
      run_chunk(row, std::min(together, end - row));
    for (std::size_t s = 0; s < text_.sums.size(); ++s)
      typed(text_.sums[s], reinterpret_cast<T*>(sums_ + s * kRegisterBytes), [&](auto* parts) {
        using S = std::remove_pointer_t<decltype(parts)>;
        fold(parts, reinterpret_cast<S*>(totals + s * work_.columns_) + first_);
      });
  }

private:
  // Where the elements of a row are: at data + row * step. A step of 0 is that of a register.
  struct Place {
    std::byte* data = nullptr;
    i64 step = 0;
    bool is_single = false;

    std::byte* at(i64 row) const { return data + row * step; }
  };
  // An instruction with the places of its operands and of its result.
  struct Bound {
    Place parts[3], to;
  };

  const StepWork& work_;
  const StepText& text_;
  const i64 first_, width_;
  const bool is_whole_; // the strip has all columns
  const u8* active_;
  const T* values_; // of columns
  Scratch<Bound> steps_;
  Scratch<Place> results_;
  bool all_, none_; // columns of the strip run
  bool copies_any_ = false;
  i64 period_, rows_;
  std::byte *memory_, *copies_, *expanded_, *sums_;

  // Whether the last instruction of a store writes directly to the elements of its parameter.
  bool is_direct(std::size_t store) const {
    return all_ && is_whole_ && work_.is_direct_[store] != 0;
  }

  // Whether no instruction reads values that another one has in a cache: then each visits all rows
  // at once.
  bool is_streamed() const {
    if (!text_.is_streamed || width_ > 1 || copies_any_)
      return false;
    for (std::size_t s = 0; s < text_.stores.size(); ++s)
      if (!is_direct(s))
        return false;
    return true;
  }

  void bind() {
    for (int r = 0; r < text_.registers; ++r)
      results_.data()[r] = {memory_ + r * kRegisterBytes};
    for (std::size_t s = 0; s < text_.stores.size(); ++s)
      if (is_direct(s))
        results_.data()[text_.stores[s].from] = elements_of(text_.stores[s].parameter);
    for (std::size_t i = 0; i < text_.elements.size(); ++i) {
      const StepInstruction& one = text_.elements[i];
      Bound& bound = steps_.data()[i];
      for (int part = 0; part < one.operands; ++part)
        bound.parts[part] = place_of(one, part);
      bound.to =
          is_sum(one.code) ? Place{sums_ + one.to * kRegisterBytes} : results_.data()[one.to];
    }
  }

  Place elements_of(int parameter) const {
    const StepArgument<T>& argument = work_.arguments_[parameter];
    return {argument.data + first_ * i64(sizeof(T)), argument.ld * i64(sizeof(T))};
  }

  Place place_of(const StepInstruction& one, int part) {
    const StepOperand operand = one.parts[part];
    if (operand.place == StepPlace::ELEMENT)
      return results_.data()[operand.at];
    if (operand.place == StepPlace::COLUMN)
      return column_of(one, part);
    const bool is_rows = text_.parameters[operand.at].kind == StepKind::rows;
    if (is_rows ? width_ == 1 : is_whole_ && work_.arguments_[operand.at].ld == width_)
      return elements_of(operand.at);
    copies_any_ = true;
    return {copies_ + operand.at * kRegisterBytes};
  }

  // The value of a column: a single one, or repeated for the rows of a chunk.
  Place column_of(const StepInstruction& one, int part) {
    const int at = one.parts[part].at;
    const bool is_condition = one.code == StepCode::where && part == 0;
    const i64 item = one.is_complex && !is_condition ? sizeof(T) : sizeof(R);
    auto* const from = const_cast<std::byte*>(
        reinterpret_cast<const std::byte*>(values_ + at * work_.columns_) + first_ * item);
    if (width_ == 1 && takes_single(one.code, part))
      return {from, 0, true};
    std::byte* const to = expanded_ + at * kRegisterBytes;
    const i64 rows = std::min(rows_, work_.rows_);
    for (i64 row = 0; row < rows; ++row)
      std::memcpy(to + row * width_ * item, from, width_ * item);
    return {to};
  }

  void run_chunk(i64 row, i64 rows) {
    if (copies_any_)
      copy_in(row, rows);
    const i64 n = rows * width_;
    for (std::size_t i = 0; i < text_.elements.size(); ++i) {
      const StepInstruction& one = text_.elements[i];
      const Bound& bound = steps_.data()[i];
      StepSource parts[3];
      for (int part = 0; part < one.operands; ++part)
        parts[part] = {bound.parts[part].at(row), bound.parts[part].is_single};
      if (is_sum(one.code))
        run_sum<R>(one, n, bound.to.data, period_, parts);
      else if (one.squares >= 0)
        run_with_squares<R>(one, n, bound.to.at(row), sums_ + one.squares * kRegisterBytes, period_,
                            parts);
      else
        run_operator<R>(one, n, bound.to.at(row), parts);
    }
    for (std::size_t s = 0; s < text_.stores.size(); ++s)
      if (!is_direct(s))
        store(text_.stores[s], row, rows);
  }

  // Copies elements that are not adjacent.
  void copy_in(i64 row, i64 rows) {
    for (std::size_t at = 0; at < text_.parameters.size(); ++at) {
      const StepParameter& parameter = text_.parameters[at];
      const StepArgument<T>& argument = work_.arguments_[at];
      T* const copy = reinterpret_cast<T*>(copies_ + at * kRegisterBytes);
      if (!parameter.is_loaded)
        continue;
      if (parameter.kind == StepKind::rows) {
        for (i64 i = 0; width_ > 1 && i < rows; ++i)
          std::fill_n(copy + i * width_, width_, argument.template of<T>()[row + i]);
      } else if (!is_whole_ || argument.ld != width_) {
        const T* const from = argument.template of<T>() + row * argument.ld + first_;
        for (i64 i = 0; i < rows; ++i)
          std::copy_n(from + i * argument.ld, width_, copy + i * width_);
      }
    }
  }

  void store(const StepStore& store, i64 row, i64 rows) const {
    const StepArgument<T>& argument = work_.arguments_[store.parameter];
    const T* const from = reinterpret_cast<const T*>(memory_ + store.from * kRegisterBytes);
    T* const to = argument.template of<T>() + row * argument.ld + first_;
    for (i64 i = 0; i < rows; ++i)
      for (i64 c = 0; c < width_; ++c)
        if (active_[c])
          to[i * argument.ld + c] = from[i * width_ + c];
  }

  // Adds the sums of a period up, in the order of the compiled entries.
  template <class S>
  void fold(S* parts, S* totals) const {
    if (width_ == 1) {
      for (int half = detail::kLanes / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; ++lane)
          parts[lane] += parts[lane + half];
      totals[0] += parts[0];
      return;
    }
    for (i64 lane = 0; lane < period_; ++lane)
      totals[lane % width_] += parts[lane];
  }
};

const std::shared_ptr<const StepProgram>& program_in(PyObject* capsule) {
  return held_in<const StepProgram>(kCapsule, capsule);
}

Object run_program(const Call& call) {
  const auto& program = program_in(call.argument(0));
  const auto& parameters = program->of_real.parameters;
  const auto vector = std::find_if(parameters.begin(), parameters.end(),
                                   [](const auto& one) { return one.kind == StepKind::vectors; });
  const int at = static_cast<int>(vector - parameters.begin()) + 1;
  with_value_type(call, call.name(at), call.array(at), [&](auto value) {
    const StepWork<decltype(value)> work(program, call);
    call.submit(work.elements(), work);
  });
  return none_object();
}

// run_step(executor, program, *arguments), or a half of it with its slots as one more argument.
template <Half HALF>
PyObject* run_step(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  const char* const missing = "run_step takes an executor, a program and the arguments of its step";
  if (count < 2) {
    PyErr_SetString(PyExc_TypeError, missing);
    return nullptr;
  }
  try {
    const StepProgram& program = *program_in(arguments[1]);
    return run_entry(program.operation.c_str(), program.names.data(), program.names.size(),
                     &run_program, arguments, count, HALF);
  } catch (const PythonError&) {
    return nullptr;
  }
}

// step_program(operation, names, of_real, of_complex), all of them texts.
PyObject* step_program(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  constexpr int kTexts = 4;
  const char* texts[kTexts];
  if (count != kTexts) {
    PyErr_SetString(PyExc_TypeError, "step_program takes four texts");
    return nullptr;
  }
  for (int at = 0; at < kTexts; ++at) {
    texts[at] = PyUnicode_AsUTF8(arguments[at]);
    if (texts[at] == nullptr)
      return nullptr;
  }
  try {
    const auto made = std::make_shared<StepProgram>();
    made->operation = texts[0];
    made->words.push_back("program");
    for (std::string_view rest(texts[1]); !rest.empty();)
      made->words.emplace_back(next_of(rest, ' '));
    for (const std::string& word : made->words)
      made->names.push_back(word.c_str());
    made->of_real = StepText::parse(texts[2]);
    made->of_complex = StepText::parse(texts[3]);
    return capsule_of<const StepProgram>(kCapsule, made).release();
  } catch (const PythonError&) {
    // the indicator is set
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

} // namespace

void add_step_program_entries(PyObject* module) {
  static PyMethodDef methods[] = {
      method_of("step_program", step_program),
      method_of("run_step", run_step<Half::WHOLE>),
      method_of("run_step_visiting", run_step<Half::VISITING>),
      method_of("run_step_finishing", run_step<Half::FINISHING>),
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, methods);
}

} // namespace wl
