package registry_test

import (
	"encoding/json"
	"fmt"

	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

// A registry looks names up byte for byte, evaluates arguments by the closed schema,
// and offers a similar name for one that no tool has.
func Example() {
	tools, err := registry.New([]registry.Tool{{
		Name:        "web.search",
		InputSchema: json.RawMessage(`{"type":"object","required":["query"],"properties":{"query":{"type":"string","minLength":1}}}`),
		Run:         tool.Run{Type: "demo"},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	entry, _ := tools.Lookup("web.search")
	arguments := func() map[string]any { return map[string]any{"query": "", "limit": json.Number("3")} }
	for _, v := range entry.Judge("web.search", []byte(`{"query":"","limit":3}`), arguments) {
		fmt.Println(v.Code, v.Message)
	}
	if _, found := tools.Lookup("Web.Search"); !found {
		fmt.Println(tools.Suggest("Web.Search", func(string) bool { return true }, 1))
	}
	// Output:
	// unexpected_argument Argument "limit" is not part of web.search. Send the call again without it.
	// invalid_value Argument "query" must be at least 1 character long, not 0.
	// [web.search]
}

// A name map writes names in the alphabet of a face, and refuses names that would
// become one.
func ExampleNewNameMap() {
	names, err := registry.NewNameMap([]string{"web.search", "files.read"}, registry.OpenAI())
	if err != nil {
		fmt.Println(err)
		return
	}
	wire, _ := names.Wire("web.search")
	name, _ := names.Name(wire)
	fmt.Println(wire, name)
	_, err = registry.NewNameMap([]string{"web.search", "web_search"}, registry.OpenAI())
	fmt.Println(err)
	// Output:
	// web_search web.search
	// name map: found "web_search", which becomes "web_search" like "web.search" where dots are not allowed; expected names that stay apart
}
