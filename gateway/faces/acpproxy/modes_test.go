package acpproxy

import (
	"testing"

	"github.com/callgate/callgate/internal/acp/wire"
)

// TestModesThatAskNobody: the modes of known agents in which nobody is asked are refused, and the
// others are not.
func TestModesThatAskNobody(t *testing.T) {
	for id, refused := range map[string]bool{
		// claude-agent-acp, gemini-cli, qwen-code, codex-acp, opencode, and words for the same.
		"bypassPermissions": true, "acceptEdits": true, "dontAsk": true, "auto": true,
		"default": false, "plan": false, "yolo": true, "autoEdit": true, "auto-edit": true, "auto_edit": true, "YOLO mode": true,
		"read-only": false, "full-access": true, "Full Access": true, "build": false, "ask": false, "code": false, "architect": false,
		"dangerously-skip-permissions": true, "never": true, "never-ask": true, "on-request": false, "untrusted": false, "always": true,
		"autopilot": true, "Trust all": true, "no approval": true,
	} {
		if got := (modeRules{}).refuses(id, "A mode"); got != refused {
			t.Errorf("id %q: refused %t", id, got)
		}
		if got := (modeRules{}).refuses("m1", id); got != refused {
			t.Errorf("name %q: refused %t", id, got)
		}
	}
}

// TestAllowMode: a list of the operator is the whole list.
func TestAllowMode(t *testing.T) {
	r := modeRules{allowed: []string{"acceptEdits"}}
	if r.refuses("acceptEdits", "Accept edits") || !r.refuses("default", "Default") || !r.refuses("yolo", "") {
		t.Error("other modes than those of the list may be chosen")
	}
	if !r.refusesValue("mode", "default", "") || r.refusesValue("model", "default", "") || !r.refusesValue("other", "yolo", "") {
		t.Error("the list is of modes")
	}
}

// TestFilteredModes: the editor sees no mode that asks nobody, and a session that begins in one is
// refused.
func TestFilteredModes(t *testing.T) {
	modes := func(current string) *wire.ModeState {
		return &wire.ModeState{CurrentModeID: current, AvailableModes: []wire.Mode{{ID: "default", Name: "Default"}, {ID: "yolo", Name: "Go"}, {ID: "m", Name: "Bypass permissions"}}}
	}
	for current, asks := range map[string]bool{"default": true, "yolo": false, "m": false, "unlisted": true, "full-access": false} {
		shown, got := modeRules{}.filterModes(modes(current))
		if got != asks || len(shown.AvailableModes) != 1 || shown.AvailableModes[0].ID != "default" {
			t.Errorf("%s: asks %t, shown %v", current, got, shown.AvailableModes)
		}
	}
	if shown, asks := (modeRules{}).filterModes(nil); shown != nil || !asks {
		t.Error("no modes")
	}
}

// TestFilteredOptions: values and switches by which an agent asks nobody are not shown, whatever
// the agent calls their category.
func TestFilteredOptions(t *testing.T) {
	choice := func(category, current string, values ...string) wire.ConfigOption {
		c := wire.ConfigOption{ID: "c", Name: "C", Category: category, Current: current}
		for _, v := range values {
			c.Options = append(c.Options, wire.ConfigValue{Value: v, Name: v})
		}
		return c
	}
	grouped := func(c wire.ConfigOption) wire.ConfigOption {
		c.Groups, c.Options = []wire.ConfigGroup{{Group: "g", Name: "G", Options: c.Options}}, nil
		return c
	}
	for name, c := range map[string]struct {
		option wire.ConfigOption
		shown  int // values
		asks   bool
		hidden bool
	}{
		"mode":                 {option: choice("mode", "ask", "ask", "auto", "yolo"), shown: 1, asks: true},
		"mode in groups":       {option: grouped(choice("mode", "ask", "ask", "auto", "yolo")), shown: 1, asks: true},
		"mode is set":          {option: choice("mode", "yolo", "ask", "yolo"), shown: 1},
		"mode, not listed":     {option: choice("mode", "full access", "ask"), shown: 1},
		"model auto":           {option: choice("model", "auto", "auto", "x"), shown: 2, asks: true},
		"a mode called model":  {option: choice("model", "ask", "ask", "bypassPermissions"), shown: 1, asks: true},
		"without a category":   {option: choice("", "ask", "ask", "never"), shown: 1, asks: true},
		"a switch":             {option: wire.ConfigOption{ID: "fast", Name: "Fast", Boolean: true, On: true}, asks: true},
		"a switch, off":        {option: wire.ConfigOption{ID: "auto_approve", Name: "A", Boolean: true}, asks: true, hidden: true},
		"a switch, on":         {option: wire.ConfigOption{ID: "a", Name: "Skip permissions", Boolean: true, On: true}, hidden: true},
		"a switch called yolo": {option: wire.ConfigOption{ID: "yolo", Name: "Y", Boolean: true, On: true}, hidden: true},
	} {
		shown, asks := modeRules{}.filterOptions([]wire.ConfigOption{c.option})
		if asks != c.asks || (len(shown) == 0) != c.hidden {
			t.Errorf("%s: asks %t, shown %v", name, asks, shown)
		} else if !c.hidden && len(values(shown[0])) != c.shown {
			t.Errorf("%s: shown %v", name, values(shown[0]))
		}
	}
	s := newSession("s", open)
	filtered, _ := modeRules{}.filterOptions([]wire.ConfigOption{choice("mode", "ask", "ask", "yolo"), {ID: "b", Name: "B", Boolean: true}, {ID: "auto_run", Name: "R", Boolean: true}})
	s.show(nil, filtered)
	for name, c := range map[string]struct {
		r   wire.SetConfigOptionRequest
		may bool
	}{
		"shown":           {wire.SetConfigOptionRequest{ConfigID: "c", Value: "ask"}, true},
		"hidden value":    {wire.SetConfigOptionRequest{ConfigID: "c", Value: "yolo"}, false},
		"a choice as on":  {wire.SetConfigOptionRequest{ConfigID: "c", Boolean: true, On: true}, false},
		"a switch":        {wire.SetConfigOptionRequest{ConfigID: "b", Boolean: true, On: true}, true},
		"a hidden switch": {wire.SetConfigOptionRequest{ConfigID: "auto_run", Boolean: true, On: true}, false},
		"unknown":         {wire.SetConfigOptionRequest{ConfigID: "d", Value: "ask"}, false},
	} {
		if got := s.offered().hasValue(c.r); got != c.may {
			t.Errorf("%s: %t", name, got)
		}
	}
}
