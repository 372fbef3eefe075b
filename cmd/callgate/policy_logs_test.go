package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recordedLog is the lines of a log of four calls of the built-in configuration.
func recordedLog(t *testing.T) []string {
	t.Helper()
	t.Chdir(t.TempDir())
	for range 4 {
		var stdout, stderr bytes.Buffer
		e := env{Stdin: strings.NewReader(`{"tool":{"name":"time.now","arguments":{}}}`), Stdout: &stdout, Stderr: &stderr}
		if code := run(t.Context(), e, []string{"call", "-"}); code != 0 {
			t.Fatalf("call ends with %d: %s", code, stderr.String())
		}
	}
	data, err := os.ReadFile(filepath.Join("callgate-data", "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
}

// Replay and suggest name the fault of a log, whether they continue or not.
func TestForgedLogs(t *testing.T) {
	lines := recordedLog(t)
	lines[len(lines)-1] += "\n"
	whole := strings.Join(lines, "")
	edit := func(line int, from, to string) string {
		edited := append([]string(nil), lines...)
		edited[line] = strings.Replace(edited[line], from, to, 1)
		return strings.Join(edited, "")
	}
	for name, c := range map[string]struct {
		log     string
		refused bool   // without --unverified
		said    string // with and without
	}{
		"whole":         {whole, false, ""},
		"cut short":     {whole[:len(whole)-20], false, "note: log.jsonl ends in "},
		"repeated":      {lines[0] + whole, true, "log.jsonl:2: seq 2: the line has seq 1, expected 2"},
		"reordered":     {lines[0] + lines[2] + lines[1] + strings.Join(lines[3:], ""), true, "log.jsonl:2: seq 2: the line has seq 3, expected 2"},
		"removed":       {strings.Join(append(append([]string(nil), lines[:2]...), lines[3:]...), ""), true, "log.jsonl:3: "},
		"two chains":    {whole + whole, true, "log.jsonl:9: seq 9: the line has seq 1, expected 9"},
		"forged tool":   {edit(2, "time.now", "web.search"), true, "log.jsonl:3: seq 3: the line was altered"},
		"forged digest": {edit(2, `"config_digest":"`, `"config_digest":"0`), true, "log.jsonl:3: seq 3: the line was altered"},
		"unknown event": {edit(2, `"event":"decision"`, `"event":"novel"`), true, "log.jsonl:3: seq 3: the line was altered"},
		"no UTF-8":      {edit(2, `"1.0.0"`, "\"\xff\""), true, "log.jsonl:3: seq 3: the line was altered"},
		"a long line":   {lines[0] + strings.Repeat("x", 5<<20) + "\n" + strings.Join(lines[1:], ""), true, "log.jsonl:2: "},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile("log.jsonl", []byte(c.log), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, command := range []string{"replay", "suggest"} {
				for _, unverified := range []bool{false, true} {
					args := []string{"policy", command, "--log", "log.jsonl"}
					if unverified {
						args = append(args, "--unverified")
					}
					var stdout, stderr bytes.Buffer
					code := run(t.Context(), env{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr}, args)
					if !strings.Contains(stderr.String(), c.said) || c.said == "" && strings.Contains(stderr.String(), "log.jsonl") {
						t.Errorf("%q says %q; expected %q", args, stderr.String(), c.said)
					}
					if !unverified && (code != 0) != c.refused || c.refused && !unverified && stdout.Len() > 0 {
						t.Errorf("%q ends with %d, and prints %q", args, code, stdout.String())
					}
				}
			}
		})
	}
}
