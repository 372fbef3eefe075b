package elicitation

import (
	"errors"
	"slices"
	"strconv"

	"github.com/callgate/callgate/internal/decimal"
	"github.com/callgate/callgate/wrapper"
)

const (
	// maxOptions bounds how many values one field chooses from.
	maxOptions = 256
	// maxCount bounds lengths.
	maxCount = 1_000_000_000
)

// formats are those that a text may have; read only.
var formats = []string{"email", "uri", "date", "date-time"}

var errField = errors.New("a field of a form is of no known type, or states what its type does not have")

// readField reads one field: as the caller is given it, and as answers are judged
// by it.
func readField(m members) (display, rules object, err error) {
	kind, _, err := m.text("type")
	if err != nil {
		return nil, nil, err
	}
	display, rules = object{{"type", kind}}, object{{"type", kind}}
	for _, name := range []string{"title", "description"} {
		s, has, err := m.text(name)
		if err != nil {
			return nil, nil, err
		}
		if has {
			display.add(name, wrapper.EscapeText(s))
		}
	}
	_, enum := m["enum"]
	_, one := m["oneOf"]
	switch {
	case kind == "string" && (enum || one):
		err = readEnum(m, &display, &rules)
	case kind == "string":
		err = readText(m, &display, &rules)
	case kind == "number" || kind == "integer":
		err = readNumber(m, kind, &display, &rules)
	case kind == "boolean":
		err = readBoolean(m, &display)
	case kind == "array":
		err = readMultiEnum(m, &display, &rules)
	default:
		err = errField
	}
	return display, rules, err
}

func readText(m members, display, rules *object) error {
	if err := m.checkNames("type", "title", "description", "default", "format", "minLength", "maxLength"); err != nil {
		return err
	}
	format, has, err := m.text("format")
	if err != nil || has && !slices.Contains(formats, format) {
		return errField
	}
	if has {
		display.add("format", format)
		rules.add("format", format)
	}
	if err := m.bounds("minLength", "maxLength", display, rules); err != nil {
		return err
	}
	value, has, err := m.text("default")
	if err != nil || !isPlain(value) {
		return errField
	}
	if has {
		display.add("default", value)
	}
	return nil
}

func readNumber(m members, kind string, display, rules *object) error {
	if err := m.checkNames("type", "title", "description", "default", "minimum", "maximum"); err != nil {
		return err
	}
	var limits [2]*decimal.Decimal
	for i, name := range []string{"minimum", "maximum"} {
		n, has, err := m.number(name)
		if err != nil {
			return err
		}
		if !has {
			continue
		}
		limits[i] = &n.Decimal
		display.add(name, n.literal)
		rules.add(name, n.literal)
	}
	if limits[0] != nil && limits[1] != nil && limits[0].Compare(*limits[1]) > 0 {
		return errors.New("a field of a form has bounds that nothing is between")
	}
	value, has, err := m.number("default")
	if err != nil {
		return err
	}
	if has {
		if kind == "integer" && !value.IsInteger() {
			return errField
		}
		display.add("default", value.literal)
	}
	return nil
}

func readBoolean(m members, display *object) error {
	if err := m.checkNames("type", "title", "description", "default"); err != nil {
		return err
	}
	value, has := m["default"]
	if _, ok := value.(bool); has && !ok {
		return errField
	}
	if has {
		display.add("default", value)
	}
	return nil
}

// readEnum reads a field that takes one of some values.
func readEnum(m members, display, rules *object) error {
	if err := m.checkNames("type", "title", "description", "default", "enum", "enumNames", "oneOf"); err != nil {
		return err
	}
	options, err := m.options("oneOf", display)
	if err != nil {
		return err
	}
	rules.add("enum", options)
	value, has, err := m.text("default")
	if err != nil || has && !slices.Contains(options, value) {
		return errField
	}
	if has {
		display.add("default", value)
	}
	return nil
}

// readMultiEnum reads a field that takes several of some values.
func readMultiEnum(m members, display, rules *object) error {
	if err := m.checkNames("type", "title", "description", "default", "items", "minItems", "maxItems"); err != nil {
		return err
	}
	items, ok := m["items"].(map[string]any)
	if !ok {
		return errField
	}
	of := members(items)
	if err := of.checkNames("type", "enum", "anyOf"); err != nil {
		return err
	}
	displayItems := object{}
	kind, has := items["type"]
	_, enum := items["enum"]
	if has && kind != "string" || enum && !has {
		return errField
	}
	if has {
		displayItems.add("type", "string")
	}
	options, err := of.options("anyOf", &displayItems)
	if err != nil {
		return err
	}
	display.add("items", displayItems)
	rules.add("items", object{{"type", "string"}, {"enum", options}})
	if err := m.bounds("minItems", "maxItems", display, rules); err != nil {
		return err
	}
	values, has, err := m.texts("default")
	if err != nil || slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(options, v) }) {
		return errField
	}
	if has {
		display.add("default", append([]string{}, values...))
	}
	return nil
}

// options reads the choices of a field: values alone, with names beside them, or with a
// title each, in the member titled.
func (m members) options(titled string, display *object) ([]string, error) {
	values, plainly, err := m.texts("enum")
	if err != nil {
		return nil, err
	}
	list, withTitles, err := m.list(titled)
	if err != nil || plainly == withTitles {
		return nil, errField
	}
	names, named, err := m.texts("enumNames")
	if err != nil || named && (!plainly || len(names) != len(values)) {
		return nil, errField
	}
	if len(values)+len(list) > maxOptions {
		return nil, errors.New("a field of a form has too many values to choose from")
	}
	var options []object
	for _, one := range list {
		value, option, err := readOption(one)
		if err != nil {
			return nil, err
		}
		values, options = append(values, value), append(options, option)
	}
	seen := map[string]bool{}
	for _, value := range values {
		if !isPlain(value) || seen[value] {
			return nil, errors.New("a field of a form has a value twice, or one that is not shown")
		}
		seen[value] = true
	}
	if len(values) == 0 {
		return nil, errors.New("a field of a form has nothing to choose from")
	}
	switch {
	case withTitles:
		display.add(titled, options)
	default:
		display.add("enum", values)
	}
	if named {
		for i := range names {
			names[i] = wrapper.EscapeText(names[i])
		}
		display.add("enumNames", names)
	}
	return values, nil
}

// readOption reads a value with its title.
func readOption(one any) (value string, display object, err error) {
	option, ok := one.(map[string]any)
	if !ok {
		return "", nil, errField
	}
	m := members(option)
	if err := m.checkNames("const", "title"); err != nil {
		return "", nil, err
	}
	value, has, err := m.text("const")
	if err != nil || !has {
		return "", nil, errField
	}
	title, has, err := m.text("title")
	if err != nil || !has {
		return "", nil, errField
	}
	return value, object{{"const", value}, {"title", wrapper.EscapeText(title)}}, nil
}

// bounds reads two lengths of which the first is not above the second.
func (m members) bounds(low, high string, display, rules *object) error {
	limits := [2]int{0, maxCount}
	for i, name := range []string{low, high} {
		n, has, err := m.number(name)
		if err != nil {
			return err
		}
		if !has {
			continue
		}
		if limits[i], err = strconv.Atoi(string(n.literal)); err != nil || limits[i] < 0 || limits[i] > maxCount {
			return errField
		}
		display.add(name, limits[i])
		rules.add(name, limits[i])
	}
	if limits[0] > limits[1] {
		return errors.New("a field of a form has bounds that nothing is between")
	}
	return nil
}
