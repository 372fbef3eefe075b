package elicitation

import (
	"errors"
	"slices"
	"strconv"

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

var (
	errField  = errors.New("a field of a form is of no known type, or states what its type does not have")
	errBounds = errors.New("a field of a form has bounds that nothing is between")
)

// fieldReader reads the members of one field. It keeps the first error.
type fieldReader struct {
	members
	display object // as the caller is given the field
	rules   object // as answers are judged by it
	err     error
}

// readField reads one field: as the caller is given it, and as answers are judged
// by it.
func readField(m members) (display, rules object, err error) {
	kind, _, err := m.text("type")
	if err != nil {
		return nil, nil, err
	}
	r := &fieldReader{members: m, display: object{{"type", kind}}, rules: object{{"type", kind}}}
	for _, name := range []string{"title", "description"} {
		s, has, err := m.text(name)
		r.fail(err)
		if has {
			r.display.add(name, wrapper.EscapeText(s))
		}
	}
	_, enum := m["enum"]
	_, one := m["oneOf"]
	switch {
	case kind == "string" && (enum || one):
		r.readEnum()
	case kind == "string":
		r.readText()
	case kind == "number" || kind == "integer":
		r.readNumber(kind)
	case kind == "boolean":
		r.readBoolean()
	case kind == "array":
		r.readMultiEnum()
	default:
		r.fail(errField)
	}
	return r.display, r.rules, r.err
}

func (r *fieldReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// failIf fails with errField.
func (r *fieldReader) failIf(wrong bool) {
	if wrong {
		r.fail(errField)
	}
}

// checkMore refuses members that no field has, nor one of this type, whose own are names.
func (r *fieldReader) checkMore(names ...string) {
	r.fail(r.checkNames(append(names, "type", "title", "description", "default")...))
}

// readDefault reads a default that is a text.
func (r *fieldReader) readDefault(valid func(string) bool) {
	value, has, err := r.text("default")
	r.failIf(err != nil || has && !valid(value))
	if has {
		r.display.add("default", value)
	}
}

// keep adds a member that the caller is given and that judges answers.
func (r *fieldReader) keep(name string, value any) {
	r.display.add(name, value)
	r.rules.add(name, value)
}

func (r *fieldReader) readText() {
	r.checkMore("format", "minLength", "maxLength")
	format, has, err := r.text("format")
	r.failIf(err != nil || has && !slices.Contains(formats, format))
	if has {
		r.keep("format", format)
	}
	r.readBounds("minLength", "maxLength")
	r.readDefault(isPlain)
}

func (r *fieldReader) readNumber(kind string) {
	r.checkMore("minimum", "maximum")
	var limits []number
	for _, name := range []string{"minimum", "maximum"} {
		n, has, err := r.number(name)
		r.fail(err)
		if has {
			limits = append(limits, n)
			r.keep(name, n.literal)
		}
	}
	if len(limits) == 2 && limits[0].Compare(limits[1].Decimal) > 0 {
		r.fail(errBounds)
	}
	value, has, err := r.number("default")
	r.fail(err)
	if has {
		r.failIf(kind == "integer" && !value.IsInteger())
		r.display.add("default", value.literal)
	}
}

func (r *fieldReader) readBoolean() {
	r.checkMore()
	if value, has := r.members["default"]; has {
		_, ok := value.(bool)
		r.failIf(!ok)
		r.display.add("default", value)
	}
}

// readEnum reads a field that takes one of some values.
func (r *fieldReader) readEnum() {
	r.checkMore("enum", "enumNames", "oneOf")
	options := r.readOptions("oneOf")
	r.rules.add("enum", options)
	r.readDefault(func(value string) bool { return slices.Contains(options, value) })
}

// readMultiEnum reads a field that takes several of some values.
func (r *fieldReader) readMultiEnum() {
	r.checkMore("items", "minItems", "maxItems")
	items, ok := r.members["items"].(map[string]any)
	r.failIf(!ok)
	of := &fieldReader{members: items, display: object{}}
	of.fail(of.checkNames("type", "enum", "anyOf"))
	kind, has := items["type"]
	_, enum := items["enum"]
	of.failIf(has && kind != "string" || enum && !has)
	if has {
		of.display.add("type", "string")
	}
	options := of.readOptions("anyOf")
	r.fail(of.err)
	r.display.add("items", of.display)
	r.rules.add("items", object{{"type", "string"}, {"enum", options}})
	r.readBounds("minItems", "maxItems")
	values, has, err := r.texts("default")
	r.failIf(err != nil || slices.ContainsFunc(values, func(v string) bool { return !slices.Contains(options, v) }))
	if has {
		r.display.add("default", append([]string{}, values...))
	}
}

// readOptions reads the choices of a field: values alone, with names beside them, or with a
// title each, in the member titled.
func (r *fieldReader) readOptions(titled string) []string {
	values, plainly, err := r.texts("enum")
	r.fail(err)
	list, withTitles, err := r.list(titled)
	r.failIf(err != nil || plainly == withTitles)
	names, named, err := r.texts("enumNames")
	r.failIf(err != nil || named && (!plainly || len(names) != len(values)))
	if len(values)+len(list) > maxOptions {
		r.fail(errors.New("a field of a form has too many values to choose from"))
		return nil
	}
	var options []object
	for _, one := range list {
		value, option, err := readOption(one)
		r.fail(err)
		values, options = append(values, value), append(options, option)
	}
	seen := map[string]bool{}
	for _, value := range values {
		if !isPlain(value) || seen[value] {
			r.fail(errors.New("a field of a form has a value twice, or one that is not shown"))
		}
		seen[value] = true
	}
	if len(values) == 0 {
		r.fail(errors.New("a field of a form has nothing to choose from"))
	}
	if withTitles {
		r.display.add(titled, options)
	} else {
		r.display.add("enum", values)
	}
	if named {
		for i := range names {
			names[i] = wrapper.EscapeText(names[i])
		}
		r.display.add("enumNames", names)
	}
	return values
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
	value, hasValue, err := m.text("const")
	title, hasTitle, titleErr := m.text("title")
	if err != nil || titleErr != nil || !hasValue || !hasTitle {
		return "", nil, errField
	}
	return value, object{{"const", value}, {"title", wrapper.EscapeText(title)}}, nil
}

// readBounds reads two lengths of which the first is not above the second.
func (r *fieldReader) readBounds(low, high string) {
	limits := [2]int{0, maxCount}
	for i, name := range []string{low, high} {
		n, has, err := r.number(name)
		r.fail(err)
		if !has {
			continue
		}
		limits[i], err = strconv.Atoi(string(n.literal))
		r.failIf(err != nil || limits[i] < 0 || limits[i] > maxCount)
		r.keep(name, limits[i])
	}
	if limits[0] > limits[1] {
		r.fail(errBounds)
	}
}
