package mcp_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// accepted is what clients ask of the name of a tool. Some drop the whole server where
// one name is different.
var accepted = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// TestNames: a tool is listed and called by one name, the wire name, or with
// server.mcp_names: registry the registry's. The other one stands for no tool, and the
// refusal offers the listed one. The audit log has the registry's name either way.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		dotted         bool
		listed, others []string
	}{
		{false, []string{"web_search", "time_now", "files_delete"}, []string{"web.search", "time.now", "files.delete"}},
		{true, []string{"web.search", "time.now", "files.delete"}, []string{"web_search", "time_now", "files_delete"}},
	} {
		h := open(t, plan{dotted: c.dotted})
		list := names(h.ask(t, "tools/list", "").Result.Tools)
		if len(list) != 6 || !slices.Contains(list, c.listed[0]) || !slices.Contains(list, c.listed[1]) {
			t.Errorf("listed are %q", list)
		}
		for _, name := range list {
			if !c.dotted && !accepted.MatchString(name) {
				t.Errorf("%q is listed", name)
			}
		}
		for i, arguments := range []string{`{"query":"x"}`, `{}`} {
			r, old := h.call(t, c.listed[i], arguments), h.old(t, "tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, c.listed[i], arguments))
			if r.Result.IsError || r.text(t) != `{"did":`+arguments+`}` || old.text(t) != r.text(t) {
				t.Errorf("%s: %s, %s", c.listed[i], r.raw, old.raw)
			}
			h.ledger.mu.Lock()
			for _, record := range h.ledger.records {
				if record.Tool != []string{"web.search", "time.now"}[i] {
					t.Errorf("%s: the log has %q", c.listed[i], record.Tool)
				}
			}
			h.ledger.records = nil
			h.ledger.mu.Unlock()
			r = h.call(t, c.others[i], arguments)
			if want := fmt.Sprintf("There is no tool \\\"%s\\\". Did you mean %s?", c.others[i], c.listed[i]); r.Error.Code != -32602 || r.code() != "unknown_tool" ||
				!strings.Contains(r.raw, want) || !strings.Contains(r.raw, `"did_you_mean":["`+c.listed[i]+`"]`) {
				t.Errorf("%s: %s", c.others[i], r.raw)
			}
			h.ledger.mu.Lock()
			h.ledger.records = nil
			h.ledger.mu.Unlock()
		}
		// Refusals speak of the tool by the name that it is known by.
		for name, arguments := range map[string]string{c.listed[0]: `{"query":"x","extra":1}`, c.listed[2]: `{"path":"x"}`} {
			r := h.call(t, name, arguments)
			if !r.Result.IsError || !strings.Contains(r.text(t), name) {
				t.Errorf("%s: %s", name, r.raw)
			}
			for _, other := range c.others {
				if strings.Contains(r.text(t), other) {
					t.Errorf("%s: %s", name, r.raw)
				}
			}
		}
	}
}

// TestNamesAfterFailures: what a tool is refused for while it runs has no other name of
// it either.
func TestNamesAfterFailures(t *testing.T) {
	for code, engine := range map[string]toolFunc{
		"tool_failed": func(tool.Call) (tool.Result, error) {
			return tool.Result{}, refusal.New(refusal.ToolFailed, "No.")
		},
		"result_too_large": says(`"` + strings.Repeat("x", 2<<20) + `"`),
		"invalid_result":   says(`{`),
	} {
		h := open(t, plan{engine: engine})
		if r := h.call(t, "time_now", `{}`); r.code() != code || strings.Contains(r.text(t), "time.now") {
			t.Errorf("%s: %.300s", code, r.raw)
		}
	}
}

// TestNamesAcrossPages: a list is in the order of the names that it has, whatever the
// order of the registry's names is, so that its cursor leaves out nothing.
func TestNamesAcrossPages(t *testing.T) {
	var tools strings.Builder
	tools.WriteString("tools:\n")
	for i := range 120 {
		// t.x stands before tX in the registry, and t_x behind it here.
		fmt.Fprintf(&tools, "  - {name: t.n%03d, input_schema: {type: object}, run: {type: demo}}\n  - {name: tN%03d, input_schema: {type: object}, run: {type: demo}}\n", i, i)
	}
	tools.WriteString("# end\n")
	h := open(t, plan{files: map[string]string{"tools/core.yaml": tools.String(), "policy.csv": "p, Analyst, acme/alpha, *, , allow\n# end\n"}})
	var got []string
	for params := ""; ; {
		r := h.ask(t, "tools/list", params)
		got = append(got, names(r.Result.Tools)...)
		if r.Result.Cursor == "" || len(got) > 1000 {
			break
		}
		params = fmt.Sprintf(`"cursor":%q`, r.Result.Cursor)
	}
	if len(got) != 240 || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != 240 {
		t.Errorf("%d names: %q", len(got), got)
	}
}
