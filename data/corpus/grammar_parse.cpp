// The notation of grammars, read into compiled form.  Rules with parameters are compiled once for
// each list of slots that they are called with.

#include <algorithm>

#include <fmt/format.h>
#include <cctype>
#include <limits>
#include <utility>
#include <xgrad/autograd/fail.hpp>
#include <xgrad/data/corpus/grammar_rules.hpp>

namespace xgrad::data {
namespace {

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos)
    return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto at = text.find(separator);
    parts.push_back(trim(text.substr(0, at)));
    if (at == std::string_view::npos)
      return parts;
    text.remove_prefix(at + 1);
  }
}

struct Definition {
  std::size_t line = 0;
  std::vector<std::string> formals, locals, columns;
  std::string body;               // of a rule
  std::vector<std::string> rows;  // of a table
};

class Parser {
 public:
  explicit Parser(std::string_view source) { read_definitions(source); }

  Rules parse(std::string_view start) {
    check<ValueError>(definitions_.contains(std::string(start)), "grammar: there is no rule {}",
                      start);
    rules_.start = rule(std::string(start), {});
    // Tables that nothing binds are compiled too, so that a mistake in one is found.
    for (const auto& [name, definition] : definitions_) {
      if (!definition.columns.empty())
        column(name, definition.columns.front());
    }
    resolve_columns();
    return std::move(rules_);
  }

 private:
  using Names = std::map<std::string, std::string, std::less<>>;

  struct Call {
    std::string name;
    std::vector<std::string> arguments;
  };

  template <class... Args>
  [[noreturn]] void error(fmt::format_string<Args...> format, Args&&... args) const {
    fail<ValueError>("grammar, line {}: {}", line_,
                     fmt::format(format, std::forward<Args>(args)...));
  }

  void read_definitions(std::string_view source) {
    Definition* current = nullptr;
    while (!source.empty()) {
      ++line_;
      const auto end = source.find('\n');
      const std::string_view line = source.substr(0, end);
      source.remove_prefix(end == std::string_view::npos ? source.size() : end + 1);
      const std::string_view text = trim(line);
      if (text.empty() || text.front() == '#')
        continue;
      if (line.front() == ' ' || line.front() == '\t') {
        if (!current)
          error("a continuation before the first definition");
        if (!current->columns.empty())
          current->rows.emplace_back(text);
        else
          current->body +=
              (current->body.ends_with("\\n") || current->body.ends_with('>') ? "" : " ") +
              std::string(text);
      } else {
        current = define(text);
      }
    }
  }

  Definition* define(std::string_view text) {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos)
      error("expected 'name:' in {}", text);
    std::string_view head = trim(text.substr(0, colon));
    Definition definition;
    definition.line = line_;
    if (head.starts_with("table ")) {
      head = trim(head.substr(6));
      definition.columns = names(text.substr(colon + 1));
    } else {
      definition.locals = bracketed(head, '{', '}');
      definition.formals = bracketed(head, '[', ']');
      definition.body = trim(text.substr(colon + 1));
    }
    check_name(head);
    const auto [at, fresh] = definitions_.emplace(std::string(head), std::move(definition));
    if (!fresh)
      error("{} is defined twice, first on line {}", head, at->second.line);
    return &at->second;
  }

  void check_name(std::string_view name) const {
    const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
    if (name.empty() || !std::all_of(name.begin(), name.end(), fits))
      error("'{}' is not a name", name);
  }

  std::vector<std::string> names(std::string_view list, char separator = '|') const {
    std::vector<std::string> result;
    for (const std::string_view name : split_at(list, separator)) {
      check_name(name);
      result.emplace_back(name);
    }
    return result;
  }

  /// Takes a list in brackets off the end of a head.
  std::vector<std::string> bracketed(std::string_view& head, char open, char close) const {
    if (!head.ends_with(close))
      return {};
    const auto at = head.rfind(open);
    if (at == std::string_view::npos)
      error("no '{}' for '{}' in {}", open, close, head);
    const std::string_view list = head.substr(at + 1, head.size() - at - 2);
    head = trim(head.substr(0, at));
    return names(list, ',');
  }

  std::size_t rule(const std::string& name, const std::vector<std::string>& arguments) {
    const auto found = definitions_.find(name);
    if (found == definitions_.end() || !found->second.columns.empty())
      error("{} is not a rule", name);
    const Definition& definition = found->second;
    if (arguments.size() != definition.formals.size())
      error("{} takes {} slots, not {}", name, definition.formals.size(), arguments.size());
    const std::string full =
        arguments.empty() ? name : fmt::format("{}[{}]", name, fmt::join(arguments, ","));
    const auto [at, fresh] = compiled_.emplace(full, rules_.choices.size());
    if (!fresh)
      return at->second;
    const std::size_t id = at->second;
    Names slots;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      slots[definition.formals[i]] = arguments[i];
    // A local slot has a name of its own, so that two rules may each have a "t" of a different
    // kind.
    for (const std::string& local : definition.locals)
      slots[local] = name + "-" + local;
    const std::size_t caller = std::exchange(line_, definition.line);
    Choice choice{.name = full, .alternatives = {}, .locals = {}, .openings = {}};
    rules_.choices.push_back(choice);  // its place, for rules that call themselves
    for (const std::string_view text : split_at(definition.body, '|'))
      add(choice, text, slots, true);
    for (const std::string& local : definition.locals)
      choice.locals.push_back(slot(slots[local]));
    rules_.choices[id] = std::move(choice);
    line_ = caller;
    return id;
  }

  /// A column of a table: a choice whose alternatives are the rows.
  std::size_t column(const std::string& table, const std::string& name) {
    const Definition& definition = definitions_.at(table);
    const auto at = std::find(definition.columns.begin(), definition.columns.end(), name);
    if (at == definition.columns.end())
      error("table {} has no column {}", table, name);
    const auto [known, fresh] = compiled_.emplace(table + "." + name, rules_.choices.size());
    if (!fresh)
      return known->second;
    const std::size_t id = known->second;
    const auto index = static_cast<std::size_t>(at - definition.columns.begin());
    const std::size_t caller = std::exchange(line_, definition.line);
    Choice choice{.name = table + "." + name, .alternatives = {}, .locals = {}, .openings = {}};
    rules_.choices.push_back(choice);
    for (const std::string& row : definition.rows) {
      std::string_view rest = row;
      const std::uint32_t weight = take_weight(rest);
      const auto cells = split_at(rest, '|');
      if (cells.size() != definition.columns.size())
        error("table {} has {} columns, but a row has {} cells: {}", table,
              definition.columns.size(), cells.size(), row);
      add(choice, cells[index], {}, false);
      choice.alternatives.back().weight = weight;
      choice.total += weight - 1;
    }
    if (choice.alternatives.empty())
      error("table {} has no rows", table);
    rules_.choices[id] = std::move(choice);
    line_ = caller;
    return id;
  }

  void add(Choice& choice, std::string_view text, const Names& slots, bool weighted) {
    Alternative alternative;
    const std::string_view whole = text;
    if (weighted)
      alternative.weight = take_weight(text);
    alternative.items = sequence(text, slots);
    if (alternative.items.empty())
      error("{} has an empty alternative '{}': each must begin with a character", choice.name,
            whole);
    if (alternative.weight > std::numeric_limits<std::uint32_t>::max() / 2 - choice.total)
      error("the weights of {} are too large", choice.name);
    choice.total += alternative.weight;
    choice.alternatives.push_back(std::move(alternative));
  }

  std::uint32_t take_weight(std::string_view& text) const {
    const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
    if (digits == 0)
      return 1;
    if (digits > 6 || digits == text.size() || text[digits] != ' ')
      error("'{}' does not begin with a weight of 1 to 999999 and a blank", text);
    const int weight = std::stoi(std::string(text.substr(0, digits)));
    if (weight == 0)
      error("a weight of 0 in '{}'", text);
    text = trim(text.substr(digits));
    return static_cast<std::uint32_t>(weight);
  }

  Sequence sequence(std::string_view text, const Names& slots) {
    Sequence items;
    std::string plain;
    const auto flush = [&] {
      if (!plain.empty())
        items.push_back({.kind = Item::Kind::literal, .text = std::exchange(plain, {})});
    };
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '<') {
        const auto end = text.find('>', i);
        if (end == std::string_view::npos)
          error("no '>' in '{}'", text);
        flush();
        items.push_back(reference(text.substr(i + 1, end - i - 1), slots));
        i = end;
      } else if (text[i] == '\\') {
        if (i + 1 == text.size() || text[i + 1] != 'n')
          error("a backslash that is not \\n in '{}'", text);
        plain += '\n';
        ++i;
      } else {
        plain += text[i] == '_' ? ' ' : text[i];
      }
    }
    flush();
    return items;
  }

  Item reference(std::string_view text, const Names& names_of) {
    if (const auto equals = text.find('='); equals != std::string_view::npos) {
      Item item{.kind = Item::Kind::bind};
      item.slot = slot(actual(trim(text.substr(0, equals)), names_of));
      const auto parts = split_at(text.substr(equals + 1), '!');
      for (std::size_t i = 1; i < parts.size(); ++i)
        item.others.push_back(slot(actual(parts[i], names_of)));
      const auto [name, arguments] = call(parts[0], names_of);
      const auto dot = name.find('.');
      const std::string table = name.substr(0, dot);
      const auto found = definitions_.find(table);
      if (found != definitions_.end() && !found->second.columns.empty())
        item.choice = column(
            table, dot == std::string::npos ? found->second.columns.front() : name.substr(dot + 1));
      else
        item.choice = rule(name, arguments);
      rules_.bound_to[item.slot].insert(item.choice);
      return item;
    }
    if (const auto dot = text.find('.'); dot != std::string_view::npos)
      return {.kind = Item::Kind::column,
              .text = std::string(
                  trim(text.substr(dot + 1))),  // resolved when all slots' tables are known
              .slot = slot(actual(trim(text.substr(0, dot)), names_of))};
    const auto [name, arguments] = call(text, names_of);
    if (definitions_.contains(name) && !names_of.contains(name))
      return {.kind = Item::Kind::choice, .choice = rule(name, arguments)};
    return {.kind = Item::Kind::again, .slot = slot(actual(name, names_of))};
  }

  Call call(std::string_view text, const Names& names_of) const {
    Call result;
    for (const std::string& name : bracketed(text, '[', ']'))
      result.arguments.push_back(actual(name, names_of));
    result.name = text;
    return result;
  }

  static std::string actual(std::string_view name, const Names& names_of) {
    const auto at = names_of.find(name);
    return at == names_of.end() ? std::string(name) : at->second;
  }

  std::size_t slot(const std::string& name) {
    check_name(name);
    const auto [at, fresh] = slot_ids_.emplace(name, rules_.slots.size());
    if (fresh) {
      rules_.slots.push_back(name);
      rules_.bound_to.emplace_back();
    }
    return at->second;
  }

  /// Finds the choice of every <slot.column>.  Compiling a column can add choices, hence the loop
  /// by index.
  void resolve_columns() {
    for (std::size_t c = 0; c < rules_.choices.size(); ++c) {
      for (std::size_t a = 0; a < rules_.choices[c].alternatives.size(); ++a) {
        for (std::size_t i = 0; i < rules_.choices[c].alternatives[a].items.size(); ++i) {
          const Item item = rules_.choices[c].alternatives[a].items[i];
          if (item.kind != Item::Kind::column)
            continue;
          const auto& bound = rules_.bound_to[item.slot];
          const std::string bound_name = bound.empty() ? "" : rules_.choices[*bound.begin()].name;
          const std::string table = bound_name.substr(0, bound_name.find('.'));
          if (table == bound_name)  // a rule's name has no dot
            fail<ValueError>("grammar, rule {}: <{}.{}> needs a slot that is bound to a table",
                             rules_.choices[c].name, rules_.slots[item.slot], item.text);
          rules_.choices[c].alternatives[a].items[i].choice = column(table, item.text);
        }
      }
    }
  }

  std::map<std::string, Definition, std::less<>> definitions_;
  std::map<std::string, std::size_t> compiled_, slot_ids_;
  Rules rules_;
  std::size_t line_ = 0;
};

}  // namespace

Rules parse_rules(std::string_view source, std::string_view start) {
  return Parser(source).parse(start);
}

}  // namespace xgrad::data
