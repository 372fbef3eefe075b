package toolimport

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/toolfile"
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

// TestOperationsAreBounded: a document of too many operations is refused before all of them are translated.
func TestOperationsAreBounded(t *testing.T) {
	var paths []string
	for i := range maxOperations + 1 {
		paths = append(paths, fmt.Sprintf(`"/p%d":{"get":{"operationId":"o%d"}}`, i, i))
	}
	document := []byte(`{"openapi":"3.1.0","servers":[{"url":"https://a.example"}],"paths":{` + strings.Join(paths, ",") + `}}`)
	if im, err := OpenAPI("document.json", document, OpenAPIOptions{}); err == nil || !strings.Contains(err.Error(), "choose some with --tag") {
		t.Errorf("found %v, %v", im, err)
	}
	if im, err := OpenAPI("document.json", document, OpenAPIOptions{Operations: []string{"o7"}}); err != nil || len(im.Names) != 1 {
		t.Errorf("found %v, %v", im, err)
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

// TestOpenAPICredentials: one place is the credential of all operations that one scheme is enough for.
func TestOpenAPICredentials(t *testing.T) {
	const text = `openapi: 3.1.0
info: {title: A, version: 1.0.0}
servers: [{url: "https://a.example"}]
paths:
  /keyed: {get: {operationId: keyed, security: [{key: []}]}}
  /token: {get: {operationId: token, security: [{token: []}]}}
  /basic: {get: {operationId: basic, security: [{basic: []}]}}
  /two: {get: {operationId: two, security: [{key: [], token: []}]}}
  /either: {get: {operationId: either, security: [{basic: []}, {key: []}]}}
  /free: {get: {operationId: free, security: [{}]}}
components:
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Api-Key}
    token: {type: http, scheme: bearer}
    basic: {type: http, scheme: basic}
`
	for _, c := range []struct {
		credentials []string
		want        map[string]string
		fails       string
	}{
		{nil, map[string]string{}, ""},
		{[]string{"env:KEY"}, map[string]string{"keyed": "header X-Api-Key env:KEY", "token": "bearer  env:KEY", "either": "header X-Api-Key env:KEY"}, ""},
		{[]string{"key=env:KEY", "token=file:/run/t"}, map[string]string{"keyed": "header X-Api-Key env:KEY", "token": "bearer  file:/run/t", "either": "header X-Api-Key env:KEY"}, ""},
		{[]string{"token=env:KEY"}, map[string]string{"token": "bearer  env:KEY"}, ""},
		{[]string{"s3cret"}, nil, "--credential is no place of a secret"},
		{[]string{"key=s3cret"}, nil, "--credential is no place of a secret"},
		{[]string{"basic=env:KEY"}, nil, `no chosen operation asks for "basic" alone`},
		{[]string{"kee=env:KEY"}, nil, `no chosen operation asks for "kee" alone`},
	} {
		im, err := OpenAPI("a.yaml", []byte(text), OpenAPIOptions{Credentials: c.credentials})
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%q: found %v", c.credentials, err)
			}
			continue
		}
		if err != nil || len(im.Names) != 6 {
			t.Fatalf("%q: found %v, %v", c.credentials, im, err)
		}
		var r document.Report
		for _, e := range toolfile.Read(&r, "tools.yaml", im.YAML) {
			found := ""
			if given := e.Definition.Run.Credential; given != nil {
				found = given.In + " " + given.Name + " " + given.Secret
			}
			if found != c.want[e.Definition.Name] {
				t.Errorf("%q: %s has %q", c.credentials, e.Definition.Name, found)
			}
		}
		for _, note := range im.Changed {
			if names, _, _ := strings.Cut(note.Message, ":"); c.want[names] != "" {
				t.Errorf("%q: found %v", c.credentials, note)
			}
		}
	}
}
