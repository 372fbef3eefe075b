package corpora

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/callgate/callgate/internal/decimal"
)

// Components are the schemas of a protocol's document in testdata/schemas.
type Components struct {
	mu       sync.Mutex // of the compiler
	compiler *jsonschema.Compiler
	under    string // where they stand in it
}

// document is the URL of the schemas for the compiler, which fetches nothing.
const document = "https://protocol.invalid/openapi.json"

// OpenAPI reads the components of a document.
func OpenAPI(t testing.TB, elements ...string) *Components {
	t.Helper()
	return components(t, "#/components/schemas/", elements)
}

// Definitions is OpenAPI for a document of JSON Schema with definitions.
func Definitions(t testing.TB, elements ...string) *Components {
	t.Helper()
	return components(t, "#/$defs/", elements)
}

func components(t testing.TB, under string, elements []string) *Components {
	t.Helper()
	return compiled(t, under, read(t, elements))
}

// read reads a document of schemas.
func read(t testing.TB, elements []string) map[string]any {
	t.Helper()
	path := Testdata(append([]string{"schemas"}, elements...)...)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	object, ok := value.(map[string]any)
	if !ok {
		t.Fatalf("%s is no object", path)
	}
	closeOver(object)
	return object
}

func compiled(t testing.TB, under string, value map[string]any) *Components {
	t.Helper()
	c := &Components{compiler: jsonschema.NewCompiler(), under: under}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	if err := c.compiler.AddResource(document, value); err != nil {
		t.Fatal(err)
	}
	return c
}

// closeOver corrects an error of OXP's document: the answer to a call has
// additionalProperties: false beside branches that declare its value and its error. Read
// literally, no answer could have either; the intended meaning is that no other members are
// allowed.
func closeOver(v any) {
	switch v := v.(type) {
	case map[string]any:
		if _, branches := v["oneOf"]; branches && v["additionalProperties"] == false {
			delete(v, "additionalProperties")
			v["unevaluatedProperties"] = false
		}
		for _, child := range v {
			closeOver(child)
		}
	case []any:
		for _, child := range v {
			closeOver(child)
		}
	}
}

// Check says why a body is not what a component asks for. It is safe for concurrent use.
func (c *Components) Check(component string, body []byte) error {
	c.mu.Lock()
	schema, err := c.compiler.Compile(document + c.under + component)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	var value any
	if err := decimal.Unmarshal(body, &value); err != nil {
		return fmt.Errorf("%s: %w", component, err)
	}
	return schema.Validate(value)
}
