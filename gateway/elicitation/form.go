package elicitation

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/registry/schema"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// maxFields bounds how many fields a form has.
const maxFields = 64

// form holds the rules for the answer to a question of that kind.
type form struct{ schema *registry.Entry }

// readForm reads the parameters of a form. raw are the same, for the order in which
// the fields stand.
func readForm(m members, raw []byte) (*form, object, error) {
	if err := m.checkNames("mode", "message", "requestedSchema"); err != nil {
		return nil, nil, err
	}
	if mode, has, err := m.text("mode"); err != nil || has && mode != "form" {
		return nil, nil, errors.New("a form is of another mode")
	}
	message, err := m.requiredNonEmpty("message")
	if err != nil {
		return nil, nil, err
	}
	schema, ok := m["requestedSchema"].(map[string]any)
	if !ok {
		return nil, nil, errors.New("a form has no schema")
	}
	var order struct {
		Schema struct {
			Properties orderedNames `json:"properties"`
		} `json:"requestedSchema"`
	}
	if err := json.Unmarshal(raw, &order); err != nil {
		return nil, nil, errors.New("the fields of a form are no object")
	}
	display, rules, err := readSchema(schema, order.Schema.Properties)
	if err != nil {
		return nil, nil, err
	}
	f, err := compileForm(rules)
	if err == nil && !f.acceptsDefaults(schema["properties"].(map[string]any)) {
		err = errors.New("a field of a form has a default that does not answer it")
	}
	return f, object{{"mode", "form"}, {"message", wrapper.EscapeText(message)}, {"requestedSchema", display}}, err
}

// readSchema reads the schema of a form: as the caller is given it, and as answers
// are judged by it. Members that generators of schemas add without a meaning, a title, a
// description and additionalProperties: false, is read and left out.
func readSchema(m members, order []string) (display, rules object, err error) {
	if err := m.checkNames("$schema", "type", "properties", "required", "title", "description", "additionalProperties"); err != nil {
		return nil, nil, err
	}
	for _, name := range []string{"$schema", "title", "description"} {
		if _, _, err := m.text(name); err != nil {
			return nil, nil, err
		}
	}
	if more, has := m["additionalProperties"]; has && more != false {
		return nil, nil, errors.New("a form allows fields that it does not name")
	}
	properties, ok := m["properties"].(map[string]any)
	if m["type"] != "object" || !ok {
		return nil, nil, errors.New("the schema of a form is of no object with fields")
	}
	if len(properties) > maxFields || len(order) != len(properties) {
		return nil, nil, errors.New("a form has too many fields")
	}
	var displayFields, ruleFields object
	for _, name := range order {
		field, ok := properties[name].(map[string]any)
		if name == "" || !isPlain(name) || !ok {
			return nil, nil, errors.New("a field of a form has a name that is not shown, or is no object")
		}
		if asksForSecret(name, field) {
			return nil, nil, errSecret
		}
		display, rules, err := readField(field)
		if err != nil {
			return nil, nil, err
		}
		displayFields.add(name, display)
		ruleFields.add(name, rules)
	}
	display = object{{"type", "object"}, {"properties", displayFields}}
	rules = slices.Clone(display[:1])
	rules.add("properties", ruleFields)
	required, has, err := m.texts("required")
	if err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for _, name := range required {
		if _, ok := properties[name]; !ok || seen[name] {
			return nil, nil, errors.New("a form requires a field that it does not have, or one twice")
		}
		seen[name] = true
	}
	if has && len(required) > 0 {
		display.add("required", required)
		rules.add("required", required)
	}
	return display, rules, nil
}

// acceptsDefaults reports whether the defaults of some fields fit their form.
func (f *form) acceptsDefaults(fields map[string]any) bool {
	defaults := map[string]any{}
	for name, field := range fields {
		if value, has := field.(map[string]any)["default"]; has {
			defaults[name] = value
		}
	}
	return !slices.ContainsFunc(f.faults(defaults), func(v schema.Violation) bool {
		return v.Code != refusal.MissingArgument // a field without one
	})
}

// faults judges fields.
func (f *form) faults(fields map[string]any) []schema.Violation {
	raw, err := json.Marshal(fields)
	if err != nil {
		raw = nil // which no schema accepts
	}
	return f.schema.Judge("the form", raw, func() map[string]any { return fields })
}

// compileForm makes the closed schema by which answers are judged.
func compileForm(schema object) (*form, error) {
	unusable := errors.New("the schema of a form cannot be judged by")
	raw, err := encode(schema)
	if err != nil {
		return nil, unusable
	}
	tools, err := registry.New([]registry.Tool{{Name: "form", InputSchema: raw, Run: tool.Run{Type: "client"}}})
	if err != nil {
		return nil, unusable // its own words would be the tool's
	}
	entry, ok := tools.Lookup("form")
	if !ok {
		return nil, unusable
	}
	return &form{entry}, nil
}
