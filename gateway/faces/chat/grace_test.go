package chat_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/parser"
)

// mistake is a completion that is refused, and the call that was meant by it.
type mistake struct {
	id, completion, finish, meant string
	subject                       []string
}

// readRefusal is a refusal as a model reads it.
type readRefusal struct {
	Code, Message string
	Violations    []struct {
		Code, Path, Message string
		Offset              int
	}
	Near []string `json:"did_you_mean"`
}

// TestGrace measures how much a refusal helps: a model that does exactly what its
// messages say, and nothing else, starts from every vector that is refused and
// from mutations of those that pass. Refusals that no
// other completion can correct are left out.
func TestGrace(t *testing.T) {
	const most = 4
	turnsBy := map[string]map[int]int{}
	once, sum := 0, 0
	every := 1
	if testing.Short() {
		every = 10
	}
	for i, m := range mistakes(t) {
		if i%every != 0 {
			continue
		}
		first := ""
		last := m.completion
		h := open(t, func(turn int, w http.ResponseWriter, r *http.Request) {
			finish := "stop"
			if turn == 0 {
				finish = m.finish
			}
			says(content(last), finish)(w, r)
		}, plan{rules: all(textProtocol, noRepairs)})
		turn := 0
		for {
			// Each answer of the model is a request of its own: what the refusal holds
			// is all that it learns.
			w := h.post(asks(""), m.subject...)
			got := reads(t, w)
			if got.Error.Code == "" {
				break
			}
			var result struct {
				Result struct{ Output struct{ Error readRefusal } } `json:"tool_result"`
			}
			if err := json.Unmarshal(got.Error.Callgate, &result); err != nil {
				t.Fatal(err)
			}
			refused := result.Result.Output.Error
			if first == "" {
				first = refused.Code
			}
			if turn++; turn > most {
				break
			}
			next, able := repairCall(last, refused, m.meant)
			if !able {
				turn = -1
				break
			}
			last, m.finish = next, "stop"
		}
		if first == "" || turn < 0 {
			continue
		}
		if turnsBy[first] == nil {
			turnsBy[first] = map[int]int{}
		}
		turnsBy[first][turn]++
		if sum++; turn == 1 {
			once++
		} else {
			t.Logf("%s: %d turns, at last %.200q", m.id, turn, last)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(turnsBy)) {
		t.Logf("%-22s %v", code, turnsBy[code])
	}
	t.Logf("corrected in one turn: %d of %d", once, sum)
	if sum < 200/every || once*10 < sum*9 {
		t.Errorf("corrected in one turn: %d of %d", once, sum)
	}
}

// mistakes are the refusable vectors that JSON can carry, and mutations of the
// calls among those that pass.
func mistakes(t testing.TB) []mistake {
	t.Helper()
	const other = `{"tool":{"name":"time.now","arguments":{}}}`
	var out []mistake
	for _, v := range corpora.Vectors(t) {
		subject := []string{}
		for header, value := range map[string]string{server.HeaderAgent: v.Agent, server.HeaderWorkspace: v.Workspace, server.HeaderProject: v.Project} {
			if value != "" {
				subject = append(subject, header, value)
			}
		}
		completion := string(v.Bytes(t))
		if v.Expect.Verdict == "refused" {
			finish := v.FinishReason
			if finish == "" {
				finish = "stop"
			}
			out = append(out, mistake{v.ID, completion, finish, other, subject})
			continue
		}
		r := parser.Parse([]byte(completion), false, parser.Options{})
		if r.Kind != parser.Call {
			continue
		}
		call := strings.TrimSpace(completion)
		arguments := string(r.Arguments)
		for name, spoiled := range map[string]string{
			"prose before":     "I will look. " + call,
			"prose behind":     call + " That is it.",
			"fenced":           "```json\n" + call + "\n```",
			"thought":          "<think>so</think>" + call,
			"twice":            call + "\n" + call,
			"in a list":        "[" + call + "]",
			"another field":    `{"thought":"hm",` + call[1:],
			"another within":   strings.Replace(call, `"name"`, `"id":"1","name"`, 1),
			"a brace too few":  call[:len(call)-1],
			"a brace too much": call + "}",
			"quotes":           strings.ReplaceAll(call, `"`, `'`),
			"a comma too much": call[:len(call)-1] + ",}",
			"as a function":    `{"function":` + call + `}`,
			"flat":             `{"name":` + strconv.Quote(r.Name) + `,"arguments":` + arguments + `}`,
			"arguments quoted": strings.Replace(call, arguments, strconv.Quote(arguments), 1),
			"no arguments":     `{"tool":{"name":` + strconv.Quote(r.Name) + `}}`,
			"one too many":     strings.Replace(call, arguments, strings.Replace(arguments, "{", `{"callgate_extra":1,`, 1), 1),
			"a near name":      strings.Replace(call, r.Name, r.Name[:len(r.Name)-1], 1),
			"another case":     strings.Replace(call, r.Name, strings.ToUpper(r.Name), 1),
			"with underscores": strings.Replace(call, r.Name, strings.ReplaceAll(r.Name, ".", "_"), 1),
			"another agent":    `{"agent":"Somebody",` + call[1:],
			"marked":           "<tool_call>" + call + "</tool_call>",
			"nothing":          "",
			"cut":              call[:len(call)/2],
		} {
			finish := "stop"
			if name == "cut" {
				finish = "length"
			}
			if arguments == "{}" && name == "one too many" {
				spoiled = strings.Replace(call, "{}", `{"callgate_extra":1}`, 1)
			}
			out = append(out, mistake{v.ID + ", " + name, spoiled, finish, call, subject})
		}
		var members map[string]json.RawMessage
		_ = json.Unmarshal(r.Arguments, &members)
		for name := range members {
			for how, value := range map[string]string{"null": "null", "a list": "[[]]", "words": `"\u0001 no value like this"`, "a number": "-123456789.5", "missing": ""} {
				changed := maps.Clone(members)
				if changed[name] = json.RawMessage(value); value == "" {
					delete(changed, name)
				}
				raw, _ := json.Marshal(changed)
				out = append(out, mistake{fmt.Sprintf("%s, %s is %s", v.ID, name, how), strings.Replace(call, arguments, string(raw), 1), "stop", call, subject})
			}
		}
	}
	return out
}

// repairCall follows a refusal. It uses the intended call only if the message asks for the whole
// call again, or for a value that only the caller knows.
func repairCall(last string, refused readRefusal, meant string) (string, bool) {
	at := 0
	if len(refused.Violations) > 0 {
		at = min(refused.Violations[0].Offset, len(last))
	}
	switch refused.Code {
	case "mixed_output":
		if strings.HasPrefix(refused.Message, "After the JSON ends") {
			return last[:at], true
		}
		if one := firstValue(last[at:]); strings.HasPrefix(one, `{"tool"`) {
			return one, true
		}
		return meant, true
	case "multiple_calls":
		one := firstValue(last)
		var list []json.RawMessage
		if json.Unmarshal([]byte(one), &list) == nil && len(list) > 0 {
			one = string(list[0])
		}
		return one, true
	case "malformed_json", "truncated_output", "too_deep", "invalid_number", "foreign_call_syntax", "empty_output", "not_a_tool_call", "output_too_large", "invalid_utf8", "duplicate_key":
		return meant, true
	case "permission_denied", "agent_unknown", "project_required", "workspace_mismatch", "project_mismatch", "boundary_violation", "tool_quarantined", "tool_starting":
		return "", false
	}
	var call any
	d := json.NewDecoder(strings.NewReader(last))
	d.UseNumber()
	if d.Decode(&call) != nil {
		return "", false
	}
	if refused.Code == "agent_mismatch" {
		call = edit(call, []string{"agent"}, nil, true)
	}
	var wanted any
	_ = json.Unmarshal([]byte(meant), &wanted)
	for _, v := range refused.Violations {
		path := strings.Split(strings.TrimPrefix(v.Path, "/"), "/")
		switch {
		case v.Code == "unknown_tool" && len(refused.Near) > 0:
			call = edit(call, path, refused.Near[0], false)
		case strings.HasPrefix(v.Code, "unexpected_"):
			call = edit(call, path, nil, true)
		case v.Path == "/tool" || v.Path == "/tool/arguments" || v.Path == "/tool/name":
			if value, ok := lookup(wanted, path); ok {
				call = edit(call, path, value, false)
			}
		default:
			call = edit(call, path, value(v.Message, path, wanted), false)
		}
	}
	out, err := json.Marshal(call)
	return string(out), err == nil
}

// firstValue is the JSON value at the start of a text.
func firstValue(s string) string {
	var raw json.RawMessage
	_ = json.NewDecoder(strings.NewReader(s)).Decode(&raw)
	return string(raw)
}

// edit sets or deletes what a pointer leads to.
func edit(v any, path []string, value any, remove bool) any {
	name := strings.ReplaceAll(strings.ReplaceAll(path[0], "~1", "/"), "~0", "~")
	switch v := v.(type) {
	case map[string]any:
		switch {
		case len(path) > 1:
			v[name] = edit(v[name], path[1:], value, remove)
		case remove:
			delete(v, name)
		default:
			v[name] = value
		}
	case []any:
		i, err := strconv.Atoi(name)
		if err != nil || i >= len(v) {
			return v
		}
		switch {
		case len(path) > 1:
			v[i] = edit(v[i], path[1:], value, remove)
		case remove:
			return slices.Delete(v, i, i+1)
		default:
			v[i] = value
		}
	}
	return v
}

func lookup(v any, path []string) (any, bool) {
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = object[name]; !ok {
			return nil, false
		}
	}
	return v, true
}

var (
	choices = regexp.MustCompile(`(?:must be|: )(?: one of)? ?("[^"]*"|-?[0-9.]+)`)
	bounds  = regexp.MustCompile(`(?:at most|at least|from|of) (-?[0-9.]+)`)
)

// value is one that a message describes: of the type it names, within the bounds
// it names, or the value that was meant where it says neither.
func value(message string, path []string, meant any) any {
	if v, ok := lookup(meant, path); ok {
		if !strings.Contains(message, "must be one of") {
			return v
		}
	}
	if m := choices.FindStringSubmatch(message); m != nil && strings.Contains(message, "one of") {
		return json.RawMessage(m[1])
	}
	number := json.Number("1")
	if m := bounds.FindStringSubmatch(message); m != nil && !strings.Contains(message, "character") {
		number = json.Number(strings.TrimRight(m[1], "."))
	}
	for kind, v := range map[string]any{"an integer": number, "a number": number, "a string": "abc", "an array": []any{}, "an object": map[string]any{}, "a boolean": true, "must be at": number} {
		if strings.Contains(message, "must be "+kind) || strings.Contains(message, "requires it: "+kind) || kind == "must be at" && strings.Contains(message, kind) {
			return v
		}
	}
	return "abc"
}
