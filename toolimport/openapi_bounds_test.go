package toolimport

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs/document"
)

// TestImportOpenAPIIsBounded: what is too large is left out and said, and nothing
// comes of half a schema.
func TestImportOpenAPIIsBounded(t *testing.T) {
	operation := func(path, schema string) string {
		return fmt.Sprintf(`%q:{"post":{"requestBody":{"content":{"application/json":{"schema":%s}}}}}`, path, schema)
	}
	large := `{"enum":[` + strings.Repeat("1,", maxOperation) + `2]}`
	small := `{"type":"string"}`
	data := `{"openapi":"3.1.0","servers":[{"url":"https://a.example"}],"paths":{` +
		operation("/small", small) + "," + operation("/large", large) + "," + operation("/next", small) + `}}`
	im, err := OpenAPI("document.json", []byte(data), OpenAPIOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(im.Names) != "[post.small post.next]" || len(im.Refused) != 1 || !strings.Contains(im.Refused[0].Message, "POST /large: found more than 50000 values") {
		t.Errorf("found %v, refused %v", im.Names, im.Refused)
	}

	var paths []string
	for i := range 100 {
		paths = append(paths, operation(fmt.Sprintf("/p%d", i), small))
	}
	r := document.Report{Unlimited: true}
	root, ok := document.ReadExternal(&r, "document.json", []byte(`{"openapi":"3.1.0","servers":[{"url":"https://a.example"}],"paths":{`+strings.Join(paths, ",")+`}}`))
	if !ok {
		t.Fatal(r.Err())
	}
	im, err = newOpenAPI(root, &r, OpenAPIOptions{}, 50).translate()
	if err != nil {
		t.Fatal(err)
	}
	if len(im.Names) == 0 || len(im.Names) > 50 || len(im.Names)+len(im.Refused) != 100 {
		t.Errorf("%d are imported and %d refused", len(im.Names), len(im.Refused))
	}
}

// TestNamesOfReferencedSchemas: schemas whose pointers end in the same name are kept apart,
// also where the document has a schema of the name that the second would get.
func TestNamesOfReferencedSchemas(t *testing.T) {
	const document = `{"openapi":"3.1.0","servers":[{"url":"https://a.example"}],
		"a":{"type":"boolean"},
		"components":{"schemas":{"a":{"type":"string"},"a.2":{"type":"integer"}}},
		"paths":{"/p":{"post":{"requestBody":{"content":{"application/json":{"schema":{"type":"object","properties":{
			"x":{"$ref":"#/components/schemas/a"},"y":{"$ref":"#/components/schemas/a.2"},"z":{"$ref":"#/a"}}}}}}}}}}`
	im, err := OpenAPI("document.json", []byte(document), OpenAPIOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(im.Names) != 1 {
		t.Fatalf("found %v, refused %v", im.Names, im.Refused)
	}
	for _, want := range []string{"a:\n", "a.2:\n", "a.3:\n", "#/$defs/a.3"} {
		if !strings.Contains(string(im.YAML), want) {
			t.Errorf("found no %q in\n%s", want, im.YAML)
		}
	}
}
