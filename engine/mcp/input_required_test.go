package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// ask is a tool that asks before it answers.
func ask(_ context.Context, r *sdk.CallToolRequest, _ echoInput) (*sdk.CallToolResult, any, error) {
	if r.Params.RequestState == "" {
		schema := map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}}
		return &sdk.CallToolResult{RequestState: "state <1>", InputRequests: sdk.InputRequestMap{
			"who":   &sdk.ElicitParams{Message: "Who are you?", RequestedSchema: schema},
			"where": &sdk.ElicitParams{Mode: "url", Message: "Where?", URL: "https://example.com/", ElicitationID: "1"},
		}}, nil, nil
	}
	caller, requested := r.Params.InputResponses["who"].(*sdk.ElicitResult)
	where, shown := r.Params.InputResponses["where"].(*sdk.ElicitResult)
	if !requested || !shown || r.Params.RequestState != "state <1>" {
		return nil, nil, errors.New("that is no answer")
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint(caller.Action, caller.Content, where.Action)}}}, nil, nil
}

// MCP-20, from the client's side: the official SDK's own server asks, and is given the
// answers. Where it speaks the older revision, it is refused as ever.
func TestMCP20ServersOfTheSDKAsk(t *testing.T) {
	places := map[string]func(t *testing.T) tool.Call{
		"2026-07-28, stdio": func(t *testing.T) tool.Call { return local(program(t, "talker"), "ask", "once") },
	}
	for name, options := range eras {
		places[name] = func(t *testing.T) tool.Call {
			return call(serveSample(t, talker(), options), "ask", "once")
		}
	}
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			c := place(t)
			h := newFixture(t, engine.Options{}, nil)
			c.QuestionKinds = []string{"form", "url"}
			result, refused := h.run(t, c)
			if !strings.HasPrefix(name, "2026-07-28") {
				if refused == nil || refused.Code != refusal.ToolFailed || result.InputRequired != nil {
					t.Errorf("%v, asked %v", refused, result.InputRequired)
				}
				return
			}
			if refused == nil || refused.Code != refusal.ToolFailed || result.InputRequired == nil || result.Attempts != 1 {
				t.Fatalf("%v, asked %v after %d attempts", refused, result.InputRequired, result.Attempts)
			}
			questions, state := result.InputRequired.Questions, result.InputRequired.State
			if len(questions) != 2 || state == nil || *state != "state <1>" ||
				questions[0].Name != "where" || questions[0].Kind != "url" || questions[0].Method != "elicitation/create" ||
				questions[1].Name != "who" || questions[1].Kind != "form" || questions[1].Method != "elicitation/create" || !strings.Contains(string(questions[1].Params), "Who are you?") {
				t.Fatalf("asked %s, state %v", show(result.InputRequired), state)
			}
			c.State, c.Answers = state, map[string]json.RawMessage{
				"who":   json.RawMessage(`{ "action":"accept", "content":{"name":"Ada"} }`),
				"where": json.RawMessage(`{"action":"decline"}`),
			}
			if result := must(t, h, c); string(result.Body) != "acceptmap[name:Ada]decline" || result.InputRequired != nil {
				t.Errorf("%q", result.Body)
			}
		})
	}
}

func show(a *tool.InputRequired) string {
	b, _ := json.Marshal(a)
	return string(b)
}

// MCP-02, MCP-20: each request declares the kinds that its caller can answer, and no other
// request of the session does. A server of the older revision is told nothing.
func TestMCP20CapabilitiesAreOfOneRequest(t *testing.T) {
	const key = `"io.modelcontextprotocol/clientCapabilities"`
	of := func(body string) string {
		var m struct {
			Params struct {
				Meta map[string]json.RawMessage `json:"_meta"`
			}
		}
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatal(err)
		}
		return string(m.Params.Meta[strings.Trim(key, `"`)])
	}
	f := newFake(t, false, answering(text("hi")))
	h := newFixture(t, engine.Options{}, nil)
	for _, c := range []struct {
		asks []string
		want string
	}{
		{[]string{"form"}, `{"elicitation":{"form":{}}}`},
		{nil, `{}`},
		{[]string{"url"}, `{"elicitation":{"url":{}}}`},
		{[]string{"url", "form"}, `{"elicitation":{"form":{},"url":{}}}`},
		{[]string{"sampling"}, `{"sampling":{}}`},
		{[]string{"roots"}, `{"roots":{}}`},
		{[]string{}, `{}`},
		{[]string{"roots", "sampling", "url", "form"}, `{"elicitation":{"form":{},"url":{}},"roots":{},"sampling":{}}`},
		{[]string{"tasks", "extensions", ""}, `{}`},
	} {
		k := call(f.url, "echo", "once")
		k.QuestionKinds = c.asks
		must(t, h, k)
		if _, body := f.last(t, "tools/call"); of(body) != c.want || strings.Contains(body, "inputResponses") || strings.Contains(body, "requestState") {
			t.Errorf("%v: %s", c.asks, body)
		}
	}
	if n := f.count("server/discover"); n != 1 {
		t.Errorf("%d sessions", n)
	}
	for _, method := range []string{"server/discover", "tools/list"} {
		if _, body := f.last(t, method); of(body) != "{}" {
			t.Errorf("%s: %s", method, body)
		}
	}
	old := newFake(t, true, answering(text("hi")))
	k := call(old.url, "echo", "once")
	k.QuestionKinds = []string{"form", "url", "sampling", "roots"}
	must(t, h, k)
	for _, method := range []string{"tools/call", "tools/list", "initialize"} {
		if method == "tools/list" && old.count(method) == 0 {
			continue
		}
		if _, body := old.last(t, method); strings.Contains(body, "elicitation") || strings.Contains(body, "sampling") || strings.Contains(body, "roots") || strings.Contains(body, key) {
			t.Errorf("%s: %s", method, body)
		}
	}
}

// MCP-19, MCP-20: what goes back to a tool that asked is what it gave, and what was
// judged, byte for byte.
func TestMCP20AnswersAreTheBytesThatWereJudged(t *testing.T) {
	empty, state := "", "a\"\\\n<é>\u2028"
	for name, c := range map[string]struct {
		state   *string
		answers map[string]json.RawMessage
		want    string
	}{
		"neither":        {nil, nil, ``},
		"a state":        {&state, nil, `,"requestState":"a\"\\\n\u003cé\u003e\u2028"`},
		"an empty state": {&empty, map[string]json.RawMessage{}, `,"requestState":""`},
		"answers": {nil, map[string]json.RawMessage{"b": json.RawMessage("{ \"n\":1.00,\"s\":\"<\" }"), "a\"": json.RawMessage(`{"action":"decline"}`)},
			`,"inputResponses":{"a\"":{"action":"decline"},"b":{ "n":1.00,"s":"<" }}`},
		"both": {&state, map[string]json.RawMessage{"": json.RawMessage(`{"n":9007199254740993}`)}, `,"inputResponses":{"":{"n":9007199254740993}},"requestState":"a\"\\\n\u003cé\u003e\u2028"`},
	} {
		f := newFake(t, false, answering(text("hi")))
		k := call(f.url, "echo", "once")
		k.State, k.Answers = c.state, c.answers
		must(t, newFixture(t, engine.Options{}, nil), k)
		_, body := f.last(t, "tools/call")
		if !strings.Contains(body, `"arguments":{"text":"hello"}`+c.want+`}`) || !json.Valid([]byte(body)) || c.want == "" && strings.Contains(body, "requestState") {
			t.Errorf("%s: %s", name, body)
		}
	}
}

// Answers that cannot be sent as what they are, are not sent; nor is the call.
func TestMCP20AnswersThatAreNotSent(t *testing.T) {
	state := "x"
	for name, c := range map[string]struct {
		legacy  bool
		state   *string
		answers map[string]json.RawMessage
		want    refusal.Code
	}{
		"nothing":                 {false, nil, map[string]json.RawMessage{"a": nil}, refusal.ToolUnavailable},
		"no JSON":                 {false, nil, map[string]json.RawMessage{"a": json.RawMessage(`{}},"name":"other"`)}, refusal.ToolUnavailable},
		"a name twice":            {false, &state, map[string]json.RawMessage{"a": json.RawMessage(`{"a":1,"a":2}`)}, refusal.ToolUnavailable},
		"to an older revision":    {true, nil, map[string]json.RawMessage{"a": json.RawMessage(`{}`)}, refusal.ToolFailed},
		"a state to an older one": {true, &state, nil, refusal.ToolFailed},
	} {
		for _, effect := range []string{"read", "once"} {
			f := newFake(t, c.legacy, answering(text("hi")))
			k := call(f.url, "echo", effect)
			k.State, k.Answers = c.state, c.answers
			_, refused := newFixture(t, engine.Options{}, nil).run(t, k)
			if refused == nil || refused.Code != c.want || f.count("tools/call") != 0 || refused.Cause == nil {
				t.Errorf("%s, %s: %v after %d calls", name, effect, refused, f.count("tools/call"))
			}
		}
	}
}

// Every way to ask that could be thought of. A question is taken whole or not at all,
// nothing of one is in a cause, and no call is sent twice.
func TestMCP20Questions(t *testing.T) {
	t.Parallel()
	const (
		failed  = refusal.ToolFailed
		invalid = refusal.InvalidResult
		form    = `{"method":"elicitation/create","params":{"message":"SECRET","requestedSchema":{"type":"object","properties":{}}}}`
		link    = `{"method":"elicitation/create","params":{"mode":"url","message":"SECRET","url":"https://example.com/"}}`
		roots   = `{"method":"roots/list"}`
	)
	requests := func(s string) string { return `{"resultType":"input_required","inputRequests":` + s + `}` }
	one := func(s string) string { return requests(`{"SECRET":` + s + `}`) }
	several := func(n int, question string) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"q%d":%s`, i, question))
		}
		return requests("{" + strings.Join(all, ",") + "}")
	}
	all := []string{"form", "url", "sampling", "roots"}
	for name, c := range map[string]struct {
		answer string
		asks   []string // nil is all
		code   refusal.Code
		asked  string // the kinds of the questions; empty is none
	}{
		"a form":                       {one(form), nil, failed, "form"},
		"a form by its mode":           {one(strings.Replace(form, `"message"`, `"mode":"form","message"`, 1)), []string{"form"}, failed, "form"},
		"a link":                       {one(link), []string{"url"}, failed, "url"},
		"a sample":                     {one(`{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}`), nil, failed, "sampling"},
		"roots":                        {one(roots), nil, failed, "roots"},
		"roots with parameters":        {one(`{"method":"roots/list","params":{"_meta":{}}}`), nil, failed, "roots"},
		"all at once":                  {requests(`{"b":` + link + `,"a":` + form + `,"c":` + roots + `}`), nil, failed, "form url roots"},
		"sixteen":                      {several(16, roots), nil, failed, strings.TrimSpace(strings.Repeat("roots ", 16))},
		"a long name":                  {requests(`{"` + strings.Repeat("x", 128) + `":` + roots + `}`), nil, failed, "roots"},
		"content that is none":         {`{"resultType":"input_required","content":null,"structuredContent":null,"isError":null,"inputRequests":{"a":` + roots + `}}`, nil, failed, "roots"},
		"a large state":                {`{"resultType":"input_required","requestState":"` + strings.Repeat("x", 16<<10) + `","inputRequests":{"a":` + roots + `}}`, nil, failed, "roots"},
		"a state null":                 {`{"resultType":"input_required","requestState":null,"inputRequests":{"a":` + roots + `}}`, nil, failed, "roots"},
		"a form, not offered":          {one(form), []string{"url", "roots", "sampling"}, failed, ""},
		"a link, not offered":          {one(link), []string{"form"}, failed, ""},
		"roots, not offered":           {requests(`{"a":` + form + `,"b":` + roots + `}`), []string{"form"}, failed, ""},
		"a sample, not offered":        {one(`{"method":"sampling/createMessage","params":{}}`), []string{"form", "url", "roots"}, failed, ""},
		"nothing was offered":          {one(form), []string{}, failed, ""},
		"another method":               {one(`{"method":"tools/call","params":{}}`), nil, failed, ""},
		"a method in capitals":         {one(`{"method":"Roots/list","params":{}}`), nil, failed, ""},
		"another mode":                 {one(`{"method":"elicitation/create","params":{"mode":"SECRET"}}`), nil, failed, ""},
		"an empty mode":                {one(`{"method":"elicitation/create","params":{"mode":""}}`), nil, failed, ""},
		"a kind of nothing":            {one(`{"method":"elicitation/create","params":{"mode":"SECRET"}}`), []string{"", "form"}, failed, ""},
		"a mode null":                  {one(`{"method":"elicitation/create","params":{"mode":null}}`), nil, invalid, ""},
		"a mode of numbers":            {one(`{"method":"elicitation/create","params":{"mode":1}}`), nil, invalid, ""},
		"a state alone, not offered":   {`{"resultType":"input_required","requestState":"SECRET"}`, []string{}, failed, ""},
		"no question":                  {requests(`{}`), nil, failed, ""},
		"nothing":                      {`{"resultType":"input_required"}`, nil, invalid, ""},
		"requests null":                {requests(`null`), nil, invalid, ""},
		"requests in a list":           {requests(`[` + form + `]`), nil, invalid, ""},
		"requests as text":             {requests(`"SECRET"`), nil, invalid, ""},
		"a state and a list":           {`{"resultType":"input_required","requestState":"SECRET","inputRequests":[]}`, nil, invalid, ""},
		"a state of numbers":           {`{"resultType":"input_required","requestState":7,"inputRequests":{"a":` + roots + `}}`, nil, invalid, ""},
		"a state that is an object":    {`{"resultType":"input_required","requestState":{},"inputRequests":{"a":` + roots + `}}`, nil, invalid, ""},
		"a state that is too large":    {`{"resultType":"input_required","requestState":"` + strings.Repeat("x", 16<<10+1) + `","inputRequests":{"a":` + roots + `}}`, nil, invalid, ""},
		"seventeen":                    {several(17, roots), nil, invalid, ""},
		"too much together":            {several(4, strings.Replace(form, "SECRET", strings.Repeat("x", 8<<10), 1)), nil, invalid, ""},
		"too much with the state":      {`{"resultType":"input_required","requestState":"` + strings.Repeat("x", 16<<10) + `","inputRequests":{"a":` + strings.Replace(form, "SECRET", strings.Repeat("x", 16<<10), 1) + `}}`, nil, invalid, ""},
		"no name":                      {requests(`{"":` + form + `}`), nil, invalid, ""},
		"a name that is too long":      {requests(`{"` + strings.Repeat("x", 129) + `":` + form + `}`), nil, invalid, ""},
		"a name with a line":           {requests(`{"a\nb":` + form + `}`), nil, invalid, ""},
		"a name with a control":        {requests(`{"a\u0085":` + form + `}`), nil, invalid, ""},
		"a name twice":                 {requests(`{"a":` + form + `,"\u0061":` + form + `}`), nil, invalid, ""},
		"a question null":              {one(`null`), nil, invalid, ""},
		"a question as text":           {one(`"SECRET"`), nil, invalid, ""},
		"a question in a list":         {one(`[` + form + `]`), nil, invalid, ""},
		"a question of nothing":        {one(`{}`), nil, invalid, ""},
		"no method":                    {one(`{"params":{}}`), nil, invalid, ""},
		"an empty method":              {one(`{"method":"","params":{}}`), nil, invalid, ""},
		"a method null":                {one(`{"method":null,"params":{}}`), nil, invalid, ""},
		"a method of numbers":          {one(`{"method":7,"params":{}}`), nil, invalid, ""},
		"more than a question":         {one(`{"method":"roots/list","params":{},"id":1}`), nil, invalid, ""},
		"a whole message":              {one(`{"jsonrpc":"2.0","id":1,"method":"roots/list"}`), nil, invalid, ""},
		"another member, no params":    {one(`{"method":"roots/list","Params":{}}`), nil, invalid, ""},
		"params null":                  {one(`{"method":"roots/list","params":null}`), nil, invalid, ""},
		"params in a list":             {one(`{"method":"roots/list","params":[]}`), nil, invalid, ""},
		"params as text":               {one(`{"method":"roots/list","params":"SECRET"}`), nil, invalid, ""},
		"params with a name twice":     {one(`{"method":"roots/list","params":{"a":1,"a":2}}`), nil, invalid, ""},
		"one good and one bad":         {requests(`{"a":` + form + `,"b":7}`), nil, invalid, ""},
		"a result as well":             {`{"resultType":"input_required","content":[{"type":"text","text":"SECRET"}],"inputRequests":{"a":` + form + `}}`, nil, invalid, ""},
		"a structured one as well":     {`{"resultType":"input_required","structuredContent":{},"inputRequests":{"a":` + form + `}}`, nil, invalid, ""},
		"content as text":              {`{"resultType":"input_required","content":"SECRET","inputRequests":{"a":` + form + `}}`, nil, invalid, ""},
		"a failure as well":            {`{"resultType":"input_required","isError":true,"inputRequests":{"a":` + form + `}}`, nil, invalid, ""},
		"the type in capitals":         {`{"resultType":"INPUT_REQUIRED","inputRequests":{"a":` + form + `}}`, nil, failed, ""},
		"a complete one that asks":     {`{"resultType":"complete","inputRequests":{"a":` + form + `}}`, nil, invalid, ""},
		"one without a type that asks": {`{"inputRequests":{"a":` + form + `}}`, nil, invalid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, legacy := range []bool{false, true} {
				for _, effect := range []string{"read", "once"} {
					f := newFake(t, legacy, answering(c.answer))
					k := call(f.url, "echo", effect)
					if k.QuestionKinds = c.asks; k.QuestionKinds == nil {
						k.QuestionKinds = slices.Clone(all)
					}
					result, refused := newFixture(t, engine.Options{}, nil).run(t, k)
					code, asked := c.code, c.asked
					if legacy && strings.Contains(c.answer, `"resultType":"input_required"`) && !strings.Contains(name, "twice") {
						code, asked = failed, "" // it was offered nothing
					}
					if refused == nil || refused.Code != code || f.count("tools/call") != 1 || result.Attempts != 1 {
						t.Fatalf("%s, legacy %v: %v after %d calls and %d attempts, want %s", effect, legacy, refused, f.count("tools/call"), result.Attempts, code)
					}
					if strings.Contains(fmt.Sprint(refused.Cause), "SECRET") || strings.Contains(refused.Message, "SECRET") || refused.Cause == nil {
						t.Errorf("%s: %v", effect, refused)
					}
					var kinds []string
					if result.InputRequired != nil {
						names := []string{}
						for _, q := range result.InputRequired.Questions {
							kinds, names = append(kinds, q.Kind), append(names, q.Name)
							if !json.Valid(q.Params) || q.Params[0] != '{' || q.Method == "" {
								t.Errorf("%s: %s", effect, show(result.InputRequired))
							}
						}
						if !slices.IsSorted(names) {
							t.Errorf("%s: asked in the order %q", effect, names)
						}
					}
					if got := strings.Join(kinds, " "); got != asked || (result.InputRequired != nil) != (asked != "") {
						t.Errorf("%s, legacy %v: asked %q, want %q", effect, legacy, got, asked)
					}
				}
			}
		})
	}
}

// The content of a question is passed on as the server wrote it.
func TestMCP20QuestionsAreTheServersBytes(t *testing.T) {
	const params = `{ "message":"hi <b>","requestedSchema":{"type":"object","properties":{"n":{"type":"number","maximum":9007199254740993.10}}} }`
	f := newFake(t, false, answering(`{"resultType":"input_required","requestState":"","inputRequests":{"a":{"params":`+params+`,"method":"elicitation/create"}},"_meta":{"x":1}}`))
	k := call(f.url, "echo", "once")
	k.QuestionKinds = []string{"form"}
	result, refused := newFixture(t, engine.Options{}, nil).run(t, k)
	if refused == nil || result.InputRequired == nil || len(result.InputRequired.Questions) != 1 || string(result.InputRequired.Questions[0].Params) != params || result.InputRequired.State == nil || *result.InputRequired.State != "" {
		t.Errorf("%v, asked %s", refused, show(result.InputRequired))
	}
	if result.Body != nil || !strings.Contains(refused.Message, "asks for input before it continues") {
		t.Errorf("%q, %s", result.Body, refused.Message)
	}
}

// A server may want to be called again, and ask nothing: its state goes to who called.
func TestMCP20StatesAlone(t *testing.T) {
	for _, requests := range []string{"", `,"inputRequests":{}`, `,"inputRequests":null`} {
		f := newFake(t, false, answering(`{"resultType":"input_required","requestState":"later"`+requests+`}`))
		k := call(f.url, "echo", "read")
		k.QuestionKinds = []string{"roots"}
		result, refused := newFixture(t, engine.Options{}, nil).run(t, k)
		if refused == nil || refused.Code != refusal.ToolFailed || f.count("tools/call") != 1 ||
			result.InputRequired == nil || len(result.InputRequired.Questions) != 0 || result.InputRequired.State == nil || *result.InputRequired.State != "later" {
			t.Errorf("%s: %v, asked %s", requests, refused, show(result.InputRequired))
		}
	}
}

// A server that asks is a healthy one: its breaker never opens.
func TestServersThatAskAreWell(t *testing.T) {
	f := newFake(t, false, answering(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}`))
	opened := 0
	h := newFixture(t, engine.Options{OnBreaker: func(outbound.BreakerEvent) { opened++ }}, nil)
	for range 25 {
		k := call(f.url, "echo", "once")
		k.QuestionKinds = []string{"roots"}
		if result, refused := h.run(t, k); refused == nil || result.InputRequired == nil {
			t.Fatalf("%v, asked %v", refused, result.InputRequired)
		}
	}
	if n := f.count("tools/call"); n != 25 || opened != 0 {
		t.Errorf("%d calls, %d events", n, opened)
	}
}
