package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/trace"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

// command runs the program as a shell would.
func command(t testing.TB, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), env{Stdin: stdin, Stdout: &out, Stderr: &errs, Wait: inTests}, args)
	return code, out.String(), errs.String()
}

// verdictLine is what check prints, as far as vectors fix it.
type verdictLine struct {
	ID      json.RawMessage
	Verdict string
	Error   struct {
		Code, Stage, Message string
		Violations           []struct{ Path, Code string }
	}
	Stages []trace.StageReport
}

// vectorVerdict is the verdict alone, whose stages must agree with it.
func (l verdictLine) vectorVerdict(t *testing.T) vectorVerdict {
	t.Helper()
	h := vectorVerdict{Verdict: l.Verdict, Code: l.Error.Code, Stage: l.Error.Stage}
	if len(l.Error.Violations) > 0 {
		h.Path = l.Error.Violations[0].Path
	}
	if n := len(l.Stages); n == 0 || l.Stages[n-1].OK != (l.Verdict != "refused") {
		t.Errorf("%s: stages %v", l.ID, l.Stages)
	}
	return h
}

var vectorConfig = corpora.Testdata("vectors", "config", "callgate.yaml")

// printed is what the command line says of one completion, and its exit code.
type printed struct {
	code           int
	stdout, stderr string
}

// check judges one completion as a shell would, and each vector once: the program is
// the same, and so is the configuration.
func (of vectors) check(t *testing.T, v corpora.Vector) printed {
	t.Helper()
	if c, known := of.checked[v.ID]; known {
		return c
	}
	args := []string{"check", "--config", of.config, "--agent", v.Agent, "--workspace", v.Workspace, "--project", v.Project}
	if v.FinishReason != "" {
		args = append(args, "--finish-reason", v.FinishReason)
	}
	code, stdout, stderr := command(t, bytes.NewReader(v.Bytes(t)), args...)
	of.checked[v.ID] = printed{code, stdout, stderr}
	return of.checked[v.ID]
}

// byCommand judges one completion as a shell would.
func (of vectors) byCommand(t *testing.T, v corpora.Vector) (vectorVerdict, bool) {
	c := of.check(t, v)
	var got verdictLine
	if err := json.Unmarshal([]byte(c.stdout), &got); err != nil {
		t.Fatalf("%s: %q: %v", v.ID, c.stdout, err)
	}
	want := exitAccepted
	if v.Expect.Verdict == "refused" {
		want = exitRefused
	}
	if c.code != want || c.stderr != "" {
		t.Errorf("%s: exit code %d, want %d; stderr %q", v.ID, c.code, want, c.stderr)
	}
	return got.vectorVerdict(t), true
}

// byLine judges all vectors as the lines of one file, in base64 or where JSON
// cannot hold them.
func byLine(t *testing.T, of vectors, encoded bool) carry {
	var in bytes.Buffer
	for _, v := range of.all {
		line := map[string]string{"id": v.ID, "agent": v.Agent, "workspace": v.Workspace, "project": v.Project}
		if v.FinishReason != "" {
			line["finish_reason"] = v.FinishReason
		}
		if encoded || v.Completion == nil {
			line["completion_b64"] = base64.StdEncoding.EncodeToString(v.Bytes(t))
		} else {
			line["completion"] = *v.Completion
		}
		if err := json.NewEncoder(&in).Encode(line); err != nil {
			t.Fatal(err)
		}
	}
	code, stdout, stderr := command(t, &in, "check", "--jsonl", "--config", of.config)
	if code != exitAccepted || stderr != "" {
		t.Fatalf("exit code %d; stderr %q", code, stderr)
	}
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	if len(lines) != len(of.all) {
		t.Fatalf("%d verdicts for %d vectors", len(lines), len(of.all))
	}
	return func(t *testing.T, v corpora.Vector) (vectorVerdict, bool) {
		var got verdictLine
		if err := json.Unmarshal([]byte(lines[0]), &got); err != nil {
			t.Fatal(err)
		}
		lines = lines[1:] // they come in order
		if string(got.ID) != `"`+v.ID+`"` {
			t.Errorf("a line is of %s, want %s", got.ID, v.ID)
		}
		return got.vectorVerdict(t), true
	}
}

// TestVectorFileAsItIs judges the files of vectors without preparing them.
func TestVectorFileAsItIs(t *testing.T) {
	for _, file := range corpora.VectorFiles() {
		code, stdout, _ := command(t, nil, "check", "--jsonl", "--config", vectorConfig, file)
		if code != exitAccepted || strings.Count(stdout, "\n") != len(corpora.Lines[corpora.Vector](t, file)) {
			t.Errorf("%s: exit code %d, %d verdicts", file, code, strings.Count(stdout, "\n"))
		}
	}
}
