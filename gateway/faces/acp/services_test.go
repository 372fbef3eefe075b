package acp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestACP70Files: the model reads, writes and runs by the editor, and the editor sees it (ACP-53, 54,
// 71, 72).
func TestACP70Files(t *testing.T) {
	h := open(t, plan{config: project(t, "0s")},
		asks("", "acp_fs_read", `{"path":"a.txt","line":2,"limit":1}`, "acp_fs_write", `{"path":"/w/b.txt","content":"new"}`, "acp_terminal_create", `{"command":"go","args":["test"]}`),
		says("Done."))
	h.Initialize(nil)
	h.Put("/w/a.txt", "one\ntwo\nthree\n")
	s := h.Session("/w")
	if stop := h.Prompt(s, "Work."); stop != "end_turn" {
		t.Fatalf("stopped by %q", stop)
	}
	calls := h.Calls(s)
	if len(calls) != 3 {
		t.Fatalf("found %+v", calls)
	}
	for i, want := range []struct{ title, kind, content, locations string }{
		{"Read a.txt", "read", `"text":"two\n"`, `{"path":"/w/a.txt","line":2}`},
		{"Write /w/b.txt", "edit", `"type":"diff"`, `{"path":"/w/b.txt"}`},
		{"Run go test", "execute", `"text":"ok\n"`, ``},
	} {
		c := calls[i]
		if c.Title != want.title || c.Kind != want.kind || c.Status() != "completed" || !strings.Contains(string(c.Content), want.content) || !strings.Contains(string(c.Locations), want.locations) {
			t.Errorf("found %+v; expected %+v", c, want)
		}
	}
	if text, _ := h.File("/w/b.txt"); text != "new" || !slices.Equal(h.Commands(), []string{"go test"}) {
		t.Errorf("the file is %q, and %q were run", text, h.Commands())
	}
	for _, method := range []string{"terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release"} {
		if n := len(h.Got(method)); n != 1 {
			t.Errorf("%s was asked %d times", method, n)
		}
	}
	if second := h.asked(t, 1); !strings.Contains(second, "two") {
		t.Errorf("the model was asked %s", second)
	}
}

// TestCommandsOfASubfolder: relative words of a command are judged from the first root, so it runs there, and the model
// is told so, where the session is open in a folder below it.
func TestCommandsOfASubfolder(t *testing.T) {
	for folder, where := range map[string]string{"/w": "", "/w/": "", "/w/sub": "/w"} {
		h := open(t, plan{config: project(t, "0s")}, asks("", "acp_terminal_create", `{"command":"cat","args":["x"]}`), says("Done."))
		h.Initialize(json.RawMessage(`{"terminal":true}`))
		s := h.Session(folder)
		h.Prompt(s, "Run.")
		got := h.Got("terminal/create")
		if len(got) != 1 || strings.Contains(string(got[0].Params), `"cwd":"`+where+`"`) != (where != "") || strings.Contains(string(got[0].Params), "cwd") != (where != "") {
			t.Errorf("%s: the editor was asked %s", folder, got)
		}
		if first := h.asked(t, 0); strings.Contains(first, "is run in") != (where != "") {
			t.Errorf("%s: the model was asked %s", folder, first)
		}
	}
}

// TestACP06WithoutServices: a client that offers no files and no terminals is asked for none. The model
// is not offered the tools, and a call of one is refused (ACP-05).
func TestACP06WithoutServices(t *testing.T) {
	h := open(t, plan{config: project(t, "0s")}, asks("", "acp_fs_read", `{"path":"/w/a"}`), says("I cannot."))
	h.Initialize(json.RawMessage(`{"fs":{"writeTextFile":true}}`))
	s := h.Session("/w")
	h.Prompt(s, "Read.")
	if first := h.asked(t, 0); strings.Contains(first, "acp_fs_read") || strings.Contains(first, "acp_terminal") || !strings.Contains(first, "acp_fs_write") {
		t.Errorf("the model was offered %s", first)
	}
	if calls := h.Calls(s); len(calls) != 1 || calls[0].Status() != "failed" || !strings.Contains(string(calls[0].Content), "tool_unavailable") {
		t.Errorf("found %+v", calls)
	}
	if n := len(h.Got("fs/read_text_file")); n != 0 {
		t.Errorf("the editor was asked %d times", n)
	}
}

// TestBoundaries: what lies outside of the project, and what the policy denies, never reaches the editor
// (ACP-21, ACP-56).
func TestBoundaries(t *testing.T) {
	h := open(t, plan{config: project(t, "0s")},
		asks("", "acp_fs_read", `{"path":"/etc/passwd"}`), asks("", "acp_fs_read", `{"path":"/w/secret"}`), asks("", "acp_fs_write", `{"path":"/w/../x","content":""}`), says("I may not."))
	h.Initialize(nil)
	s := h.Session("/w")
	if stop := h.Prompt(s, "Read."); stop != "refusal" && stop != "end_turn" {
		t.Errorf("stopped by %q", stop)
	}
	for _, c := range h.Calls(s) {
		if slices.Contains(c.Statuses, "in_progress") || slices.Contains(c.Statuses, "completed") || c.Status() != "failed" {
			t.Errorf("found %+v", c)
		}
	}
	if n := len(h.Got("fs/read_text_file")) + len(h.Got("fs/write_text_file")); n != 0 {
		t.Errorf("the editor was asked %d times", n)
	}
}
