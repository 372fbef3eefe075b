package toolimport

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs/document"
)

const shopDocument = `openapi: 3.0.3
info: {title: Shop, version: 1.0.0}
servers: [{url: https://shop.example.com}]
paths:
  /orders:
    get: {operationId: listOrders, tags: [orders]}
    post: {operationId: createOrder, tags: [orders, admin]}
    options: {}
  /orders/{id}:
    get: {operationId: getOrder, tags: [orders], parameters: [{name: id, in: path, required: true, schema: {type: string}}]}
  /orders/{id}/lines:
    put: {operationId: broken, tags: [lines], requestBody: {required: true, content: {text/csv: {}}}}
  /users:
    delete: {tags: [admin]}
`

func TestFiltersOfOpenAPI(t *testing.T) {
	for _, c := range []struct {
		name    string
		options OpenAPIOptions
		names   string // of the tools
		refused int
		err     string
	}{
		{name: "everything", names: "listOrders createOrder getOrder delete.users", refused: 2},
		{name: "operations", options: OpenAPIOptions{Operations: []string{"getOrder", "createOrder"}}, names: "createOrder getOrder"},
		{name: "a tag", options: OpenAPIOptions{Tags: []string{"admin"}}, names: "createOrder delete.users"},
		{name: "a path", options: OpenAPIOptions{Paths: []string{"/orders"}}, names: "listOrders createOrder", refused: 1},
		{name: "one segment", options: OpenAPIOptions{Paths: []string{"/orders/*"}}, names: "getOrder"},
		{name: "all below", options: OpenAPIOptions{Paths: []string{"/orders/**"}}, names: "getOrder", refused: 1},
		{name: "all below a pattern", options: OpenAPIOptions{Paths: []string{"/*/**"}}, names: "getOrder", refused: 1},
		{name: "names", options: OpenAPIOptions{Only: []string{"*Order*"}}, names: "listOrders createOrder getOrder"},
		{name: "names with a prefix", options: OpenAPIOptions{Prefix: "shop.", Only: []string{"shop.delete.*"}}, names: "shop.delete.users"},
		{name: "a broken one", options: OpenAPIOptions{Operations: []string{"broken"}}, names: "", refused: 1},
		{name: "tag and path", options: OpenAPIOptions{Tags: []string{"admin"}, Paths: []string{"/orders"}}, names: "createOrder"},
		{name: "a typing error", options: OpenAPIOptions{Operations: []string{"getOrder", "listOrder"}}, err: `--operation: "listOrder" matches nothing in shop.yaml (did you mean "listOrders"?)`},
		{name: "a tag of none", options: OpenAPIOptions{Tags: []string{"odrers"}}, err: `--tag: "odrers" matches nothing in shop.yaml (did you mean "orders"?)`},
		{name: "a path of none", options: OpenAPIOptions{Paths: []string{"/user"}}, err: `--path: "/user" matches nothing in shop.yaml (did you mean "/users"?)`},
		{name: "a name of none", options: OpenAPIOptions{Only: []string{"getOrde"}}, err: `--only: "getOrde" matches nothing in shop.yaml (did you mean "getOrder"?)`},
		{name: "a tag that another path has", options: OpenAPIOptions{Tags: []string{"lines"}, Paths: []string{"/users"}}, err: "is chosen by all of --operation, --tag, --path and --only together"},
		{name: "no pattern", options: OpenAPIOptions{Paths: []string{"/["}}, err: `--path: found "/["; expected a pattern`},
	} {
		t.Run(c.name, func(t *testing.T) {
			result, err := OpenAPI("shop.yaml", []byte(shopDocument), c.options)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("the error is %v; expected %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if names := strings.Join(result.Names, " "); names != c.names || len(result.Refused) != c.refused {
				t.Errorf("imported %q and left out %v; expected %q and %d", names, result.Refused, c.names, c.refused)
			}
		})
	}
}

func TestOpenAPIChoices(t *testing.T) {
	c := OpenAPIChoices("shop.yaml", []byte(shopDocument))
	if !slices.Equal(c.Operations, []string{"listOrders", "createOrder", "getOrder", "broken"}) ||
		!slices.Equal(c.Tags, []string{"orders", "admin", "lines"}) || len(c.Paths) != 4 {
		t.Errorf("the choices are %v", c)
	}
	if c := OpenAPIChoices("x", []byte("{")); c.Paths != nil {
		t.Errorf("a broken document has the choices %v", c)
	}
}

// TestOnly: tools that are not chosen are neither imported nor named among those that are left out.
func TestOnly(t *testing.T) {
	chat := []byte(`{"tools":[{"type":"function","function":{"name":"web_search"}},{"type":"function","function":{"name":"web_fetch"}},
		{"type":"function","function":{"name":"bad","parameters":{"type":"strin"}}},{"type":"custom","custom":{"name":"grep"}}]}`)
	for _, c := range []struct {
		only    []string
		names   string
		refused int
		err     string
	}{
		{names: "web_search web_fetch", refused: 2},
		{only: []string{"web_*"}, names: "web_search web_fetch"},
		{only: []string{"bad", "web_fetch"}, names: "web_fetch", refused: 1},
		{only: []string{"grep"}, refused: 1},
		{only: []string{"web_serch"}, err: `--only: "web_serch" matches nothing in request.json (did you mean "web_search"?)`},
	} {
		result, err := OpenAI("request.json", chat, c.only...)
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%v: the error is %v; expected %s", c.only, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if names := strings.Join(result.Names, " "); names != c.names || len(result.Refused) != c.refused {
			t.Errorf("%v: imported %q and left out %v; expected %q and %d", c.only, names, result.Refused, c.names, c.refused)
		}
	}
	mcp, err := MCP("list.json", []byte(`[{"name":"a","inputSchema":{"type":"object"}},{"name":"b"}]`), "x.", "x.a")
	if err != nil || len(mcp.Names) != 1 || len(mcp.Refused) != 0 {
		t.Errorf("of MCP: %v, %v", mcp, err)
	}
	messages, err := Anthropic("r.json", []byte(`[{"name":"a","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}]`), "a")
	if err != nil || len(messages.Names) != 1 || len(messages.Refused) != 0 {
		t.Errorf("of Messages: %v, %v", messages, err)
	}
	responses, err := Responses("r.json", []byte(`[{"type":"function","name":"a"},{"type":"web_search"}]`), "a")
	if err != nil || len(responses.Names) != 1 || len(responses.Refused) != 0 {
		t.Errorf("of Responses: %v, %v", responses, err)
	}
}

func TestGroupNotes(t *testing.T) {
	var notes []*document.Fault
	add := func(message string) {
		notes = append(notes, &document.Fault{File: "f", Line: len(notes) + 1, Message: message})
	}
	for i := range 3 {
		add(fmt.Sprintf(`tool "t%d": input_schema at /properties/p%d: declares no members; additionalProperties: true was added`, i, i))
		add(fmt.Sprintf(`PUT /pets/{id%d}: found a request body of "text/%d"; expected application/json`, i, i))
		add(fmt.Sprintf(`GET /v1/items:list%d: found the cookie "a\"%d", and no argument is sent as one; expected a query or a header`, i, i))
		add(fmt.Sprintf(`pets.a%d, pets.b and 3 more: found that the credential "k%d" (http bearer) is required, and is never an argument; x`, i, i))
	}
	groups := GroupNotes(notes)
	var kinds []string
	for _, g := range groups {
		kinds = append(kinds, g.Kind)
		if len(g.Notes) != 3 || g.Notes[0].Line >= g.Notes[1].Line {
			t.Errorf("%s has %v", g.Kind, g.Notes)
		}
	}
	expected := []string{
		"input_schema at …: declares no members; additionalProperties: true was added",
		"found a request body of …; expected application/json",
		"found the cookie …, and no argument is sent as one; expected a query or a header",
		"found that the credential … (http bearer) is required, and is never an argument; x",
	}
	if !slices.Equal(kinds, expected) {
		t.Errorf("the kinds are\n%s\nexpected\n%s", strings.Join(kinds, "\n"), strings.Join(expected, "\n"))
	}
	if hidden := GroupNotes([]*document.Fault{{Message: "a\u202eb\nc"}}); hidden[0].Kind != `a\u202eb\nc` {
		t.Errorf("a kind shows %q", hidden[0].Kind)
	}
}
