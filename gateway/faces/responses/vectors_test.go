package responses_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/parser"
)

// places are where a call can stand in a reply: whole, and in a stream (RS-43).
var places = map[string]func(item string) answer{
	"whole": func(item string) answer { return says(item) },
	"in deltas": func(item string) answer {
		return sends(renumber(drop(events("completed", item), "arguments.done"))...)
	},
	"in .done": func(item string) answer {
		return sends(renumber(drop(events("completed", item), "arguments.delta"))...)
	},
	"in the item": func(item string) answer {
		list := drop(events("completed", item), "function_call_arguments")
		list[len(list)-1] = strings.Replace(list[len(list)-1], `"output":[`+item+`]`, `"output":[]`, 1)
		return sends(renumber(list)...)
	},
	"in the first item": func(item string) answer {
		list := drop(events("completed", item), "function_call_arguments")
		for i := range list {
			if strings.Contains(list[i], "output_item.added") {
				list[i] = fmt.Sprintf(`{"sequence_number":0,"type":"response.output_item.added","output_index":0,"item":%s}`, item)
			}
		}
		return sends(renumber(list)...)
	},
	"in the terminal event alone": func(item string) answer {
		return sends(renumber(drop(drop(events("completed", item), "function_call_arguments"), "output_item"))...)
	},
}

// drop leaves out the events whose types have a part.
func drop(list []string, part string) []string {
	var rest []string
	for _, event := range list {
		if head, _, _ := strings.Cut(event, `","`); !strings.Contains(head, part) {
			rest = append(rest, event)
		}
	}
	return rest
}

// renumber gives events other numbers.
func renumber(list []string) []string {
	for i, event := range list {
		_, rest, _ := strings.Cut(event, ",")
		list[i] = fmt.Sprintf(`{"sequence_number":%d,%s`, i, rest)
	}
	return list
}

// TestVectors: the public vectors that are calls have their verdicts in every place where a
// call can stand.
func TestVectors(t *testing.T) {
	config := facetest.Vectors(t)
	var offered []string
	for _, tool := range config.Tools.Entries() {
		offered = append(offered, strings.ReplaceAll(tool.Name(), ".", "_"))
	}
	var now answer
	h := open(t, plan{config: config, rules: noRepairs}, func(w http.ResponseWriter, streamed bool) { now(w, streamed) })
	count := 0
	for _, v := range corpora.Vectors(t) {
		r := parser.Parse(v.Bytes(t), false, parser.Options{})
		if r.Kind != parser.Call || v.FinishReason != "" || v.Expect.Stage == "parse" || r.Claimed {
			continue
		}
		count++
		for place, as := range places {
			now = as(function("call_1", strings.ReplaceAll(r.Name, ".", "_"), string(r.Arguments)))
			body := asks(tools(offered...))
			if place != "whole" {
				body = asksStream(tools(offered...))
			}
			w := h.post(body, "Callgate-Agent", v.Agent, "Callgate-Workspace", v.Workspace, "Callgate-Project", v.Project)
			got := reads(t, w)
			if v.Expect.Verdict == "tool_call" {
				if len(got.Output) != 1 || string(got.Output[0].Arguments) != string(r.Arguments) {
					t.Errorf("%s, %s: %d %s", v.ID, place, w.Code, w.Body)
				}
				continue
			}
			code, stage, path := refusedBy(t, got)
			if code != v.Expect.Code || stage != v.Expect.Stage || v.Expect.Path != nil && path != *v.Expect.Path || len(got.Output) > 0 {
				t.Errorf("%s, %s: found %s %s %s, want %+v: %s", v.ID, place, code, stage, path, v.Expect, w.Body)
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d vectors are calls", count)
	}
}

// refusedBy is the refusal of an answer: its code, stage and the path of its first violation.
func refusedBy(t *testing.T, r response) (code, stage, path string) {
	t.Helper()
	if r.Error == nil {
		return "", "", ""
	}
	var result struct {
		Result struct {
			Output struct {
				Error struct {
					Code, Stage string
					Violations  []struct{ Path string }
				}
			}
		} `json:"tool_result"`
	}
	if err := json.Unmarshal(r.Error.Callgate, &result); err != nil {
		t.Fatal(err)
	}
	e := result.Result.Output.Error
	if len(e.Violations) > 0 {
		path = e.Violations[0].Path
	}
	return e.Code, e.Stage, path
}
