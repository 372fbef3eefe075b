package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

const unknown = "schema unknown_tool /tool/name"

// TestSN18NamesAreExact: a near name is offered, never used.
func TestSN18NamesAreExact(t *testing.T) {
	cases := map[string]string{search: passes}
	for _, name := range []string{"search", "web_Search", "WebSearch", "search_google", "web_search", "web/search", "web.search.", "web..search"} {
		cases[strings.Replace(search, "web.search", name, 1)] = unknown
	}
	says(t, cases)
	near := strings.Replace(search, "web.search", "web_search", 1)
	r := unlimited(t).Kernel.Check(context.Background(), completion(near))
	if r.Refusal == nil || len(r.Refusal.DidYouMean) != 1 || r.Refusal.DidYouMean[0] != "web.search" || r.Call != nil {
		t.Errorf("got %+v", r)
	}
}

func TestSN19NamesAreNotNormalised(t *testing.T) {
	cases := map[string]string{strings.Replace(search, "web.search", `web\u002esearch`, 1): passes}
	for _, name := range []string{
		"Web.Search", "WEB.SEARCH", " web.search", "web.search ", `web.search\n`, `web.search\u0000`, "web.search\u200b", "web.seаrch", "ｗeb.search", "web.ſearch", "web", "web.", "web.*", "web.search@1.0.0",
	} {
		cases[strings.Replace(search, "web.search", name, 1)] = unknown
	}
	says(t, cases)
}

func vector(more string) string {
	return `{"tool":{"name":"data.vector_search","arguments":{"embedding":[1],"top_k":1` + more + `}}}`
}

// TestSN20ClosedWorld: at the root, below it, and where a schema declares nothing.
func TestSN20ClosedWorld(t *testing.T) {
	const extra = "schema unexpected_argument /tool/arguments/"
	says(t, map[string]string{
		asking(`"x","more":1`): extra + "more", asking(`"x","":null`): strings.TrimSpace(extra), vector(`,"filter":{"field":"a","more":null}`): extra + "filter/more",
		`{"tool":{"name":"time.now","arguments":{"zone":"UTC"}}}`: extra + "zone", vector(`,"filter":{"field":"a"}`): passes,
		`{"tool":{"name":"notes.label","arguments":{"note":"n","labels":{"any":"thing"}}}}`: passes,
	})
}

func TestSN21Required(t *testing.T) {
	says(t, map[string]string{
		`{"tool":{"name":"web.search","arguments":{}}}`: "schema missing_argument /tool/arguments/query",
		vector(`,"filter":{}`):                          "schema missing_argument /tool/arguments/filter/field",
	})
}

func TestSN22NoCoercion(t *testing.T) {
	cases := map[string]string{vector(`,"filter":{"field":"a","equals":true}`): passes}
	for _, value := range []string{"5", "true", "null", "[]", "{}", `["x"]`} {
		cases[asking(value)] = "schema wrong_type /tool/arguments/query"
	}
	for _, value := range []string{`"5"`, "true", "null", "[5]", `""`} {
		cases[asking(`"x","num_results":`+value)] = "schema wrong_type /tool/arguments/num_results"
	}
	for _, value := range []string{`"1"`, "null", "true"} {
		cases[embedding(value)] = "schema wrong_type /tool/arguments/embedding/0"
	}
	says(t, cases)
}

// TestSN23Integers: a number whose fraction is zero is an integer, as in JSON Schema.
func TestSN23Integers(t *testing.T) {
	results := func(n string) string { return asking(`"x","num_results":` + n) }
	const wrong = "schema wrong_type /tool/arguments/num_results"
	says(t, map[string]string{results("5"): passes, results("5.0"): passes, results("5e0"): passes, results("50e-1"): passes, results("5.5"): wrong, results("51e-1"): wrong})
}

// TestSN24Registration: a schema that is not valid, not closed below the root, or refers
// to another document is no tool.
func TestSN24Registration(t *testing.T) {
	for schema, valid := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}}}`:                             true,
		`{"type":"object","properties":{"a":{"type":"object","additionalProperties":true}}}`: true,
		`{"type":"object","properties":{"a":{"type":"object"}}}`:                             false,
		`{"type":"objekt"}`:                false,
		`{"type":"object","required":"a"}`: false,
		`{"type":"object","minLenght":1}`:  false,
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`:                          false,
		`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`:                                  false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}}}`:                                           false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"$ref":"#/$defs/b"}}}`:        false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"string"}}}`:           true,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"(?=a)"}}}`:                            false,
		`{"type":"object","properties":{"a":{"type":"string","format":"no-such"}}}`:                           false,
		`{"type":"object","properties":{"a":{"type":"object","properties":{},"additionalProperties":false}}}`: true,
	} {
		_, err := registry.New([]registry.Tool{{Name: "a", InputSchema: json.RawMessage(schema), Run: tool.Run{Type: "demo"}}})
		if (err == nil) != valid {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// TestSN25Places: a refusal names the places of all faults by JSON Pointer and offset,
// and repeats nothing of what the arguments held.
func TestSN25Places(t *testing.T) {
	const in = `{"tool":{"name":"data.vector_search","arguments":{"embedding":["canary"],"top_k":500,"filter":{"field":"a","a/b~c":"canary"}}}}`
	r := unlimited(t).Kernel.Check(context.Background(), completion(in)).Refusal
	if r == nil {
		t.Fatal("it passed")
	}
	at := map[string]int{
		"/tool/arguments/embedding/0":    strings.Index(in, `"canary"`),
		"/tool/arguments/filter/a~1b~0c": strings.Index(in, `"a/b~c"`),
		"/tool/arguments/top_k":          strings.Index(in, "500"),
	}
	for _, v := range r.Violations {
		if offset, is := at[v.Path]; !is || offset != v.Offset {
			t.Errorf("%s at %d: %s", v.Path, v.Offset, v.Message)
		}
		delete(at, v.Path)
	}
	body, err := json.Marshal(r)
	if len(at) > 0 || err != nil || bytes.Contains(body, []byte("canary")) {
		t.Errorf("%v are not named, or something is repeated: %s", at, body)
	}
}

// wrapping is a tool with a name of two cases, which no fold may change, that answers as
// it is told to.
func wrapping(t *testing.T, in string, answer func(context.Context, tool.Call) (tool.Result, error)) calls.Outcome {
	t.Helper()
	tools, err := registry.New([]registry.Tool{{Name: "Web.searchAll", InputSchema: json.RawMessage(`{"type":"object"}`), Run: tool.Run{Type: "demo"}}})
	if err != nil {
		t.Fatal(err)
	}
	s := state(t, vectorConfig)
	s.Tools, s.Limits = tools, newLimits(t).of
	request := completion(in)
	request.Agent = "Intern" // who may use any tool
	k := kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: newLimits(t), Journal: &journal{}}, Engine: &engine{answer: answer}, Store: newShelf()})
	return k.Execute(context.Background(), k.Kernel.Judge(context.Background(), request))[0]
}

const searchAll = `{"tool":{"name":"Web.searchAll","arguments":{}}}`

// TestSN26ResultsAreWrapped: whatever a tool answers, the model reads one object with
// one member, and in that the tool and its output.
func TestSN26ResultsAreWrapped(t *testing.T) {
	for output, want := range map[string]string{`{"results":[]}`: `{"results":[]}`, `{}`: `{}`, `{"tool_result":{}}`: `{"tool_result":{}}`} {
		o := wrapping(t, searchAll, body(output, true))
		if got := string(o.Result); got != `{"tool_result":{"tool":"Web.searchAll","output":`+want+`}}` {
			t.Errorf("%s: %s", output, got)
		}
	}
}

// TestSN27NameOfTheTool is that of the call, letter for letter, also where the call is
// refused.
func TestSN27NameOfTheTool(t *testing.T) {
	fails := func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{}, refusal.New(refusal.ToolFailed, "m")
	}
	for in, want := range map[string]string{
		searchAll: `"Web.searchAll"`, strings.Replace(searchAll, "{}", `{"more":1}`, 1): `"Web.searchAll"`, strings.Replace(searchAll, "Web.", "wEB.", 1): `"wEB.searchAll"`,
		strings.Replace(searchAll, "arguments", "argument", 1): `"Web.searchAll"`, searchAll + " ok": "null", `{"tool":{"name":1,"arguments":{}}}`: "null",
	} {
		for name, answer := range map[string]func(context.Context, tool.Call) (tool.Result, error){"answers": nil, "fails": fails} {
			o := wrapping(t, in, answer)
			if !strings.HasPrefix(string(o.Result), `{"tool_result":{"tool":`+want+`,"output":{`) {
				t.Errorf("%s, and the tool %s: %s", in, name, o.Result)
			}
		}
	}
}

// TestSN28OutputsAreObjects: all else, and what could be taken for a refusal, stands in
// the member value.
func TestSN28OutputsAreObjects(t *testing.T) {
	for output, want := range map[string]string{
		"1": `{"value":1}`, "null": `{"value":null}`, `"a"`: `{"value":"a"}`, "[1]": `{"value":[1]}`, `{"error":"no"}`: `{"value":{"error":"no"}}`, `{"value":1}`: `{"value":1}`,
	} {
		o := wrapping(t, searchAll, body(output, true))
		if got := string(o.Result); got != `{"tool_result":{"tool":"Web.searchAll","output":`+want+`}}` {
			t.Errorf("%s: %s", output, got)
		}
	}
	if o := wrapping(t, searchAll, body(`{"a":1}`, false)); string(o.Result) != `{"tool_result":{"tool":"Web.searchAll","output":{"value":"{\"a\":1}"}}}` {
		t.Errorf("a text: %s", o.Result)
	}
}

// TestSN29RefusalsAreWrapped: a tool that fails and a call that is refused have the same
// form, with the code where no tool can put one.
func TestSN29RefusalsAreWrapped(t *testing.T) {
	for in, want := range map[string]refusal.Code{
		searchAll: refusal.Internal, strings.Replace(searchAll, "{}", `{"a":1}`, 1): refusal.UnexpectedArgument, "{": refusal.MalformedJSON, "Sure: " + searchAll: refusal.MixedOutput,
	} {
		o := wrapping(t, in, func(context.Context, tool.Call) (tool.Result, error) {
			return tool.Result{}, errors.New("canary")
		})
		var members map[string]struct {
			Tool   *string
			Output map[string]struct {
				Code           refusal.Code
				Stage, Message string
			}
		}
		if err := json.Unmarshal(o.Result, &members); err != nil || len(members) != 1 || len(members["tool_result"].Output) != 1 {
			t.Errorf("%s: %s (%v)", in, o.Result, err)
			continue
		}
		if e := members["tool_result"].Output["error"]; e.Code != want || e.Stage == "" || e.Message == "" || bytes.Contains(o.Result, []byte("canary")) {
			t.Errorf("%s: %s", in, o.Result)
		}
	}
}
