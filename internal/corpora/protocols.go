package corpora

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Components are the schemas of a protocol's document. They are others' and not part
// of the project.
type Components struct {
	compiler *jsonschema.Compiler
	absent   string // the file, where it is not here
	under    string // where they stand in it
}

// document is where the schemas stand for the compiler, which fetches nothing.
const document = "https://protocol.invalid/openapi.json"

// OpenAPI reads the components of a document in protocols/schemas, beside the folder
// of the corpora. Where it is absent, what is left out is named, and Check finds
// nothing wrong.
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
	root := os.Getenv("CALLGATE_CORPORA")
	if root == "" {
		root = filepath.Join(projectRoot(), "..", "shared", "corpora")
	}
	path := filepath.Join(append([]string{filepath.Dir(filepath.Clean(root)), "protocols", "schemas"}, elements...)...)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Logf("left out: what is sent is not held against %s, which is not in protocols/schemas beside the corpora", filepath.Join(elements...))
		return &Components{absent: path}
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	closeOver(value)
	c := &Components{compiler: jsonschema.NewCompiler(), under: under}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	if err := c.compiler.AddResource(document, value); err != nil {
		t.Fatal(err)
	}
	return c
}

// closeOver mends a slip of OXP's document: the answer to a call says
// additionalProperties: false beside branches that declare its value and its error.
// Read literally no answer could have either, so what is meant is that nothing else
// is declared anywhere.
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

// Require skips the test where the document is absent.
func (c *Components) Require(t testing.TB) {
	t.Helper()
	if c.absent != "" {
		t.Skipf("skipped: %s is not here", c.absent)
	}
}

// Check says why a body is not what a component asks for.
func (c *Components) Check(component string, body []byte) error {
	if c.absent != "" {
		return nil
	}
	schema, err := c.compiler.Compile(document + c.under + component)
	if err != nil {
		return err
	}
	var value any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return fmt.Errorf("%s: %w", component, err)
	}
	return schema.Validate(value)
}
