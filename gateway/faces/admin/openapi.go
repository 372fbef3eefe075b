package admin

import (
	"encoding/json"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// Description is a JSON document that describes the API.
type Description json.RawMessage

// MarshalJSON returns the document.
func (d Description) MarshalJSON() ([]byte, error) { return d, nil }

// field is a member of a JSON object: its name, and the type of its value.
type field struct {
	name     string
	t        reflect.Type
	optional bool
}

// fieldsOf returns the members that a struct marshals to, in their order. Those of embedded
// structs are its own.
func fieldsOf(t reflect.Type) []field {
	var list []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			embedded := f.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			list = append(list, fieldsOf(embedded)...)
		case !f.IsExported() || name == "-" || name == "":
		default:
			list = append(list, field{name, f.Type, strings.Contains(options, "omit")})
		}
	}
	return list
}

func names(t reflect.Type) []string {
	var list []string
	for _, f := range fieldsOf(t) {
		list = append(list, f.name)
	}
	return list
}

type object = map[string]any

// Describe returns the description of the endpoints: OpenAPI 3.1, without the name of a server,
// since the document is the same for all.
func (a *API) Describe() ([]byte, error) {
	d := describer{schemas: object{}, types: map[string]reflect.Type{}}
	paths := object{}
	for i := range a.endpoints {
		e := &a.endpoints[i]
		operations, ok := paths[e.Path].(object)
		if !ok {
			operations = object{}
			paths[e.Path] = operations
		}
		operations[strings.ToLower(e.Method)] = d.operation(e)
	}
	return wrapper.Marshal(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Callgate admin API", "version": "1",
			"description": "What operators and approvers of a gateway see and decide, on server.admin_listen. Every answer is bounded.",
		},
		"paths": paths,
		"components": object{
			"schemas": d.schemas,
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer",
				"description": "The credential of an operator, or of a principal that approves. None with auth.mode none."}},
		},
		"security": []object{{"bearer": []string{}}, {}},
	})
}

// describer gathers the schemas of named types.
type describer struct {
	schemas object
	types   map[string]reflect.Type // of the schemas
}

func (d *describer) operation(e *Endpoint) object {
	who := "Operators."
	if e.Access == Approvers {
		who = "Operators and approvers."
	}
	media := "application/json"
	if e.Stream != nil {
		media = "text/event-stream"
	}
	refused := object{"description": "A refusal, in the shape of the native face",
		"content": object{"application/json": object{"schema": d.refusal()}}}
	operation := object{
		"summary": e.Summary, "description": who,
		"responses": object{
			"200":     object{"description": "The answer", "content": object{media: object{"schema": d.schema(reflect.TypeOf(e.Answer))}}},
			"default": refused,
		},
	}
	parameters := []object{}
	for _, name := range wildcards(e.Path) {
		parameters = append(parameters, object{"name": name, "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range e.Query {
		parameters = append(parameters, object{"name": p.Name, "in": "query", "description": p.Description,
			"schema": object{"type": "string"}})
	}
	if len(parameters) > 0 {
		operation["parameters"] = parameters
	}
	if e.Body != nil {
		operation["requestBody"] = object{"required": true,
			"content": object{"application/json": object{"schema": d.schema(reflect.TypeOf(e.Body))}}}
	}
	return operation
}

// wildcards returns the names in braces of a path.
func wildcards(path string) []string {
	var list []string
	for part := range strings.SplitSeq(path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			list = append(list, strings.TrimSuffix(name, "}"))
		}
	}
	return list
}

// refusal is the schema of an answer that refuses.
func (d *describer) refusal() object {
	return object{"type": "object", "properties": object{"tool_result": object{"type": "object", "properties": object{
		"tool":   object{"type": "null"},
		"output": object{"type": "object", "properties": object{"error": d.schema(reflect.TypeFor[refusal.Error]())}},
	}}}}
}

// schema returns the schema of a type's JSON. A named struct is a schema of its own.
func (d *describer) schema(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[Description]():
		return object{}
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[refusal.Error]():
		return d.named("Refusal", reflect.TypeFor[refusalShape]())
	}
	switch t.Kind() {
	case reflect.Pointer:
		return d.schema(t.Elem())
	case reflect.Struct:
		if t.Name() == "" {
			return d.structure(t)
		}
		return d.named(t.Name(), t)
	case reflect.Slice, reflect.Array:
		return object{"type": "array", "items": d.schema(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": d.schema(t.Elem())}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16,
		reflect.Uint32, reflect.Uint64:
		return object{"type": "integer"}
	}
	return object{}
}

// refusalShape has the members of refusal.Error's JSON.
type refusalShape struct {
	Code       string `json:"code"`
	Stage      string `json:"stage"`
	Message    string `json:"message"`
	Violations []struct {
		Code    string `json:"code"`
		Path    string `json:"path"`
		Offset  int    `json:"offset,omitempty"`
		Message string `json:"message,omitempty"`
	} `json:"violations,omitempty"`
	DidYouMean   []string `json:"did_you_mean,omitempty"`
	RetryAfterMS int64    `json:"retry_after_ms,omitempty"`
	Retryable    bool     `json:"retryable"`
}

// named refers to the schema of a type, which is made once. A name that another package's type
// has too is said with the package's. The name is taken before the schema is made: a type may
// hold itself.
func (d *describer) named(name string, t reflect.Type) object {
	if other, taken := d.types[name]; taken && other != t {
		name = path.Base(t.PkgPath()) + "." + name
	}
	if _, made := d.types[name]; !made {
		d.types[name] = t
		d.schemas[name] = d.structure(t)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func (d *describer) structure(t reflect.Type) object {
	properties, required := object{}, []string{}
	for _, f := range fieldsOf(t) {
		properties[f.name] = d.schema(f.t)
		if !f.optional {
			required = append(required, f.name)
		}
	}
	slices.Sort(required)
	return object{"type": "object", "properties": properties, "required": required}
}
