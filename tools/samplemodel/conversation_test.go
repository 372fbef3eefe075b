package main

import (
	"encoding/json"
	"testing"
)

const (
	fine  = `{"tool_result":{"tool":"a","output":{"value":1}}}`
	wrong = `{"tool_result":{"tool":"a","output":{"error":{"code":"unknown_tool"}}}}`
)

func conversationOf(t *testing.T, roles ...string) conversation {
	t.Helper()
	if len(roles)%2 != 0 {
		t.Fatal("a role without content")
	}
	var messages []message
	for i := 0; i < len(roles); i += 2 {
		content, err := json.Marshal(roles[i+1])
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, message{roles[i], content})
	}
	c, ok := follow(messages)
	if !ok {
		t.Fatalf("%q were not followed", roles)
	}
	return c
}

func TestWhichTurnItIs(t *testing.T) {
	for name, c := range map[string]struct {
		lines   []string
		answers int
		turn    int
		refused bool
	}{
		"a question":                    {[]string{"system", "s", "user", "q"}, 0, 0, false},
		"a call and its result":         {[]string{"user", "q", "assistant", "", "tool", fine}, 1, 1, false},
		"a result as text":              {[]string{"user", "q", "assistant", "", "user", "The result:\n" + fine}, 1, 1, false},
		"a result of another form":      {[]string{"user", "q", "assistant", "", "tool", "42 degrees"}, 1, 1, false},
		"a refusal":                     {[]string{"user", "q", "assistant", "", "tool", wrong}, 1, 0, true},
		"a refusal as text":             {[]string{"user", "q", "assistant", "", "user", wrong}, 1, 0, true},
		"two refusals":                  {[]string{"user", "q", "assistant", "", "tool", wrong, "assistant", "", "tool", wrong}, 2, 0, true},
		"corrected after a refusal":     {[]string{"user", "q", "assistant", "", "tool", wrong, "assistant", "", "tool", fine}, 2, 1, false},
		"two calls, one refused":        {[]string{"user", "q", "assistant", "", "tool", wrong, "tool", fine}, 1, 0, true},
		"two calls, both refused":       {[]string{"user", "q", "assistant", "", "tool", wrong, "tool", wrong}, 1, 0, true},
		"two refused after a good one":  {[]string{"user", "q", "assistant", "", "tool", fine, "assistant", "", "tool", wrong, "tool", wrong}, 2, 1, true},
		"two results on lines of one":   {[]string{"user", "q", "assistant", "", "user", fine + "\n" + fine}, 1, 1, false},
		"another question":              {[]string{"user", "q", "assistant", "", "tool", fine, "assistant", "a", "user", "q"}, 2, 0, false},
		"a refusal without an answer":   {[]string{"user", wrong}, 0, 0, false},
		"a result that is no envelope":  {[]string{"user", "q", "assistant", "", "tool", `{"tool_result":7}`}, 1, 1, false},
		"a question that is an attempt": {[]string{"user", "q", "assistant", "", "user", `{"tool_result":7}`}, 1, 0, false},
	} {
		got := conversationOf(t, c.lines...)
		if got.answers != c.answers || got.turn != c.turn || got.refused != c.refused {
			t.Errorf("%s: %d answers, turn %d, refused %t; want %d, %d, %t", name, got.answers, got.turn, got.refused, c.answers, c.turn, c.refused)
		}
	}
}

func TestMessagesOfAnotherForm(t *testing.T) {
	for _, m := range []message{{Role: "owner"}, {}, {"user", []byte("7")}, {"user", []byte(`["a"]`)}, {"user", []byte(`{"text":"a"}`)}} {
		if _, ok := follow([]message{m}); ok {
			t.Errorf("%s: %s was followed", m.Role, m.Content)
		}
	}
}

func TestContentInParts(t *testing.T) {
	m := message{"user", []byte(`[{"type":"text","text":"a"},{"type":"image_url"},{"type":"text","text":"b"}]`)}
	if text, ok := m.text(); !ok || text != "ab" {
		t.Errorf("got %q, %t; want ab", text, ok)
	}
	if text, ok := (message{"assistant", []byte("null")}).text(); !ok || text != "" {
		t.Errorf("null: got %q, %t; want nothing", text, ok)
	}
}

func TestWhatATextNames(t *testing.T) {
	c := conversationOf(t, "user", "q", "assistant", "",
		"tool", `{"tool_result":{"tool":"a","output":{"list":[{"title":"old"}],"n":[1,{"b":2,"a":"{{/v}}"}],"file":"line\n"}}}`,
		"tool", `{"list":[{"title":"{{/n}}"}]}`,
		"tool", "no JSON")
	for text, want := range map[string]string{
		"":                               "",
		"plain {x}":                      "plain {x}",
		"{{/list/0/title}}.":             "{{/n}}.", // of the newest, and not filled again
		"{{/list/1/title}}":              nothing,
		"{{/list/-1}}, {{/list/a}}":      nothing + ", " + nothing,
		"{{/n}}":                         `[1,{"a":"{{/v}}","b":2}]`,
		"{{/n/0}} and {{/n/1/b}}":        "1 and 2",
		"{{/n/0/x}}":                     nothing,
		"{{}}":                           "no JSON",
		"<{{/file}}>":                    "<line>",
		"open {{/n":                      "open {{/n",
		"an end }} before {{/n/0}}":      "an end }} before 1",
		"a text that names {{/nothing}}": "a text that names " + nothing,
	} {
		if got := c.fill(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if got := conversationOf(t, "user", "q", "assistant", "", "tool", fine, "user", "q").fill("{{/value}}"); got != nothing {
		t.Errorf("a result before the question was found: %q", got)
	}
}
