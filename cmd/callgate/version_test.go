package main

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"
)

// TestBuildCompleted: the linker's word holds, the go command's notes stand in for what it left out.
func TestBuildCompleted(t *testing.T) {
	t.Parallel()
	noted := &debug.BuildInfo{Main: debug.Module{Version: "v0.3.0"}, Settings: []debug.BuildSetting{
		{Key: "vcs.time", Value: "2026-11-23T10:00:00Z"}, {Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"},
	}}
	devel := &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}
	release := build{"0.1.0", "def", "2026-11-24T10:00:00Z"}
	for _, c := range []struct {
		linked build
		info   *debug.BuildInfo
		want   build
	}{
		{build{}, nil, build{version: "devel"}},
		{build{}, devel, build{version: "devel"}},
		{build{}, &debug.BuildInfo{}, build{version: "devel"}},
		{build{}, noted, build{"0.3.0", "abc", "2026-11-23T10:00:00Z"}},
		{release, noted, release},
		{release, nil, release},
		{build{version: "0.1.0"}, noted, build{"0.1.0", "abc", "2026-11-23T10:00:00Z"}},
	} {
		if got := c.linked.completed(c.info); got != c.want {
			t.Errorf("%+v: got %+v, want %+v", c.linked, got, c.want)
		}
	}
}

// TestVersionFlag: --version belongs to the program alone, and does not serve or judge beside it.
func TestVersionFlag(t *testing.T) {
	t.Parallel()
	var stdout, stderr bytes.Buffer
	e := env{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}
	if code := run(t.Context(), e, []string{"--version"}); code != 0 || !strings.HasPrefix(stdout.String(), "callgate devel") {
		t.Errorf("code %d: %s%s", code, stdout.String(), stderr.String())
	}
	if code := run(t.Context(), e, []string{"check", "--version"}); code != 2 {
		t.Errorf("check --version: code %d, want 2", code)
	}
}
