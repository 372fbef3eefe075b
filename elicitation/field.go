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
func readField(m members) (shown, judged object, err error) {
	kind, _, err := m.text("type")
	if err != nil {
		return nil, nil, err
	}
	shown, judged = object{{"type", kind}}, object{{"type", kind}}
	for _, name := range []string{"title", "description"} {
		s, has, err := m.text(name)
		if err != nil {
			return nil, nil, err
		}
		if has {
			shown.add(name, wrapper.EscapeText(s))
		}
	}
	_, enum := m["enum"]
	_, one := m["oneOf"]
	switch {
	case kind == "string" && (enum || one):
		err = readEnum(m, &shown, &judged)
	case kind == "string":
		err = readText(m, &shown, &judged)
	case kind == "number" || kind == "integer":
		err = readNumber(m, kind, &shown, &judged)
	case kind == "boolean":
		err = readBoolean(m, &shown)
	case kind == "array":
		err = readMultiEnum(m, &shown, &judged)
	default:
		err = errField
	}
	return shown, judged, err
}

func readText(m members, shown, judged *object) error {
	if err := m.checkNames("type", "title", "description", "default", "format", "minLength", "maxLength"); err != nil {
		return err
	}
	format, has, err := m.text("format")
	if err != nil || has && !slices.Contains(formats, format) {
		return errField
	}
	if has {
		shown.add("format", format)
		judged.add("format", format)
	}
	if err := m.bounds("minLength", "maxLength", shown, judged); err != nil {
		return err
	}
	value, has, err := m.text("default")
	if err != nil || !isPlain(value) {
		return errField
	}
	if has {
		shown.add("default", value)
	}
	return nil
}

func readNumber(m members, kind string, shown, judged *object) error {
	if err := m.checkNames("type", "title", "description", "default", "minimum", "maximum"); err != nil {
		return err
	}
	var ends [2]*decimal.Decimal
	for i, name := range []string{"minimum", "maximum"} {
		n, has, err := m.number(name)
		if err != nil {
			return err
		}
		if !has {
			continue
		}
		ends[i] = &n.Decimal
		shown.add(name, n.literal)
		judged.add(name, n.literal)
	}
	if ends[0] != nil && ends[1] != nil && ends[0].Compare(*ends[1]) > 0 {
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
		shown.add("default", value.literal)
	}
	return nil
}

func readBoolean(m members, shown *object) error {
	if err := m.checkNames("type", "title", "description", "default"); err != nil {
		return err
	}
	value, has := m["default"]
	if _, ok := value.(bool); has && !ok {
		return errField
	}
	if has {
		shown.add("default", value)
	}
	return nil
}

// readEnum reads a field that takes one of some values.
func readEnum(m members, shown, judged *object) error {
	if err := m.checkNames("type", "title", "description", "default", "enum", "enumNames", "oneOf"); err != nil {
		return err
	}
	options, err := m.options("oneOf", shown)
	if err != nil {
		return err
	}
	judged.add("enum", options)
	value, has, err := m.text("default")
	if err != nil || has && !slices.Contains(options, value) {
		return errField
	}
	if has {
		shown.add("default", value)
	}
	return nil
}

// readMultiEnum reads a field that takes several of some values.
func readMultiEnum(m members, shown, judged *object) error {
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
	shownItems := object{}
	kind, has := items["type"]
	_, enum := items["enum"]
	if has && kind != "string" || enum && !has {
		return errField
	}
	if has {
		shownItems.add("type", "string")
	}
	options, err := of.options("anyOf", &shownItems)
	if err != nil {
		return err
	}
	shown.add("items", shownItems)
	judged.add("items", object{{"type", "string"}, {"enum", options}})
	if err := m.bounds("minItems", "maxItems", shown, judged); err != nil {
		return err
	}
	values, has, err := m.texts("default")
	if err != nil || slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(options, v) }) {
		return errField
	}
	if has {
		shown.add("default", append([]string{}, values...))
	}
	return nil
}

// options reads the choices of a field: values alone, with names beside them, or with a
// title each, in the member titled.
func (m members) options(titled string, shown *object) ([]string, error) {
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
		shown.add(titled, options)
	default:
		shown.add("enum", values)
	}
	if named {
		for i := range names {
			names[i] = wrapper.EscapeText(names[i])
		}
		shown.add("enumNames", names)
	}
	return values, nil
}

// readOption reads a value with its title.
func readOption(one any) (value string, shown object, err error) {
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
func (m members) bounds(low, high string, shown, judged *object) error {
	ends := [2]int{0, maxCount}
	for i, name := range []string{low, high} {
		n, has, err := m.number(name)
		if err != nil {
			return err
		}
		if !has {
			continue
		}
		if ends[i], err = strconv.Atoi(string(n.literal)); err != nil || ends[i] < 0 || ends[i] > maxCount {
			return errField
		}
		shown.add(name, ends[i])
		judged.add(name, ends[i])
	}
	if ends[0] > ends[1] {
		return errors.New("a field of a form has bounds that nothing is between")
	}
	return nil
}
