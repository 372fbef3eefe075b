package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/corpora"
)

// command runs the program as a shell would.
func command(t testing.TB, stdin io.Reader, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(context.Background(), args, stdin, &out, &errs)
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
	Stages []gateway.StageReport
}

// matches holds a verdict against what a vector expects.
func matches(t *testing.T, v corpora.Vector, got verdictLine) {
	t.Helper()
	if got.Verdict != v.Expect.Verdict || got.Error.Code != v.Expect.Code || got.Error.Stage != v.Expect.Stage {
		t.Errorf("%s: got %s %s at %s, want %s %s at %s", v.ID, got.Verdict, got.Error.Code, got.Error.Stage, v.Expect.Verdict, v.Expect.Code, v.Expect.Stage)
		return
	}
	if v.Expect.Path != nil && (len(got.Error.Violations) == 0 || got.Error.Violations[0].Path != *v.Expect.Path) {
		t.Errorf("%s: violations %v, want the first at %s", v.ID, got.Error.Violations, *v.Expect.Path)
	}
	if n := len(got.Stages); n == 0 || got.Stages[n-1].OK != (v.Expect.Verdict != "refused") {
		t.Errorf("%s: stages %v", v.ID, got.Stages)
	}
}

var vectorConfig = corpora.Testdata("vectors", "config", "callgate.yaml")

func TestVectorsOneByOne(t *testing.T) {
	for _, v := range corpora.Vectors(t) {
		args := []string{"check", "--config", vectorConfig, "--agent", v.Agent, "--workspace", v.Workspace, "--project", v.Project}
		if v.FinishReason != "" {
			args = append(args, "--finish-reason", v.FinishReason)
		}
		code, stdout, stderr := command(t, bytes.NewReader(v.Bytes(t)), args...)
		var got verdictLine
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatalf("%s: %q: %v", v.ID, stdout, err)
		}
		matches(t, v, got)
		want := exitAccepted
		if v.Expect.Verdict == "refused" {
			want = exitRefused
		}
		if code != want || stderr != "" {
			t.Errorf("%s: exit code %d, want %d; stderr %q", v.ID, code, want, stderr)
		}
	}
}

func TestVectorsByLine(t *testing.T) {
	vectors := corpora.Vectors(t)
	for _, encoded := range []bool{false, true} {
		var in bytes.Buffer
		for _, v := range vectors {
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
		code, stdout, stderr := command(t, &in, "check", "--jsonl", "--config", vectorConfig)
		if code != exitAccepted || stderr != "" {
			t.Fatalf("exit code %d; stderr %q", code, stderr)
		}
		lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
		if len(lines) != len(vectors) {
			t.Fatalf("%d verdicts for %d vectors", len(lines), len(vectors))
		}
		for i, v := range vectors {
			var got verdictLine
			if err := json.Unmarshal([]byte(lines[i]), &got); err != nil {
				t.Fatal(err)
			}
			if string(got.ID) != `"`+v.ID+`"` {
				t.Errorf("line %d is of %s, want %s", i+1, got.ID, v.ID)
			}
			matches(t, v, got)
		}
	}
}

// TestVectorFileAsItIs judges the file of vectors without preparing it.
func TestVectorFileAsItIs(t *testing.T) {
	code, stdout, _ := command(t, nil, "check", "--jsonl", "--config", vectorConfig, corpora.Testdata("vectors", "output.jsonl"))
	if code != exitAccepted || strings.Count(stdout, "\n") != len(corpora.Vectors(t)) {
		t.Errorf("exit code %d, %d verdicts", code, strings.Count(stdout, "\n"))
	}
}
