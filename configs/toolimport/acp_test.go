package toolimport_test

import (
	"slices"
	"testing"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/registry"
)

// TestACPTools: the file of the protocol's tools loads as it is, without a warning, and has every
// method that an editor runs and every kind of tool.
func TestACPTools(t *testing.T) {
	var r document.Report
	entries := toolfile.Read(&r, "acp.yaml", toolimport.ACP())
	built := toolfile.BuildRegistry(&r, entries, nil)
	if built == nil || len(r.Faults) > 0 {
		t.Fatalf("%v, %v", r.Faults, r.Err())
	}
	var methods, kinds []string
	for _, e := range built.Entries() {
		switch run := e.Run(); run.Type {
		case registry.RunACP:
			methods = append(methods, run.Tool)
		case "client":
			kinds = append(kinds, e.Kind())
			if want := "acp.permission." + e.Kind(); e.Name() != want {
				t.Errorf("%s is of the kind %s", e.Name(), e.Kind())
			}
		}
	}
	slices.Sort(methods)
	if want := []string{"fs/read_text_file", "fs/write_text_file", "terminal/create"}; !slices.Equal(methods, want) {
		t.Errorf("the methods are %q", methods)
	}
	slices.Sort(kinds)
	if want := []string{"delete", "edit", "execute", "fetch", "move", "other", "read", "search", "switch_mode", "think"}; !slices.Equal(kinds, want) {
		t.Errorf("the kinds are %q", kinds)
	}
}
