package gateway_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/ratelimit"
)

// state turns a configuration into what the kernel judges by. Tests share that of the vectors: they
// replace its members, and change none in place.
func state(t testing.TB, file string) *gateway.Config {
	t.Helper()
	c, err := vectorsLoaded, errVectors
	if file != vectorConfig {
		c, err = configs.Load(file)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &gateway.Config{
		Output: c.Output, Tools: c.Tools, Policy: c.Policy, Workspaces: c.Workspaces, Agents: c.Agents, Limits: c.Limits,
		Defaults: gateway.Subject(c.Defaults), AgentRequired: c.AgentRequired, Digest: c.Digest,
	}
}

var vectorConfig = corpora.Testdata("vectors", "config", "callgate.yaml")

// vectorsLoaded is loaded before any test runs: a schema has channels, which tests with a time of
// their own could not share if one of them had made them.
var vectorsLoaded, errVectors = configs.Load(vectorConfig)

// unlimited is the vectors' configuration without limits.
func unlimited(t testing.TB) *calls.Executor {
	t.Helper()
	s := state(t, vectorConfig)
	s.Limits = &ratelimit.Limits{Replicas: 1}
	return kernelWith(t, s, ratelimit.NewLocal(time.Now))
}

func subjectOf(v corpora.Vector) gateway.Subject {
	return gateway.Subject{Agent: v.Agent, Workspace: v.Workspace, Project: v.Project}
}

func matches(t *testing.T, v corpora.Vector, r gateway.Report) {
	t.Helper()
	var code, stage, path string
	if r.Refusal != nil {
		code, stage = string(r.Refusal.Code), string(r.Refusal.Stage)
		if len(r.Refusal.Violations) > 0 {
			path = r.Refusal.Violations[0].Path
		}
	}
	if string(r.Verdict) != v.Expect.Verdict || code != v.Expect.Code || stage != v.Expect.Stage || v.Expect.Path != nil && path != *v.Expect.Path {
		t.Errorf("%s: got %s %s at %s %s, want %+v", v.ID, r.Verdict, code, stage, path, v.Expect)
	}
}

func TestVectorsWhole(t *testing.T) {
	k := unlimited(t)
	for _, v := range corpora.Vectors(t) {
		request := gateway.Request{Subject: subjectOf(v), Inputs: []gateway.Input{{Completion: v.Bytes(t), Truncated: parser.Truncates(v.FinishReason)}}}
		matches(t, v, k.Kernel.Check(context.Background(), request))
		d := k.Kernel.Judge(context.Background(), request)
		matches(t, v, d.Reports[0])
		d.Release()
	}
}

func TestVectorsCut(t *testing.T) {
	k := unlimited(t)
	random := rand.New(rand.NewPCG(1, 2))
	for _, v := range corpora.Vectors(t) {
		in := v.Bytes(t)
		for round := range 5 {
			s, err := k.Kernel.Stream(context.Background(), gateway.Request{Subject: subjectOf(v)})
			if err != nil {
				if v.Expect.Stage != "identity" {
					t.Errorf("%s: %v", v.ID, err)
				}
				break
			}
			var released []byte
			for rest := in; len(rest) > 0; {
				n := 1
				if round > 0 {
					n = 1 + random.IntN(len(rest))
				}
				released = append(released, s.Write(rest[:n])...)
				rest = rest[n:]
			}
			d := s.Close(context.Background(), parser.Truncates(v.FinishReason))
			r := d.Reports[0]
			d.Release()
			matches(t, v, r)
			switch r.Verdict {
			case gateway.VerdictText:
				if string(released)+string(r.Text) != string(in) {
					t.Errorf("%s: text came out as %q", v.ID, released)
				}
			case gateway.VerdictRefused:
				if len(r.Refusal.Violations) > 0 && len(released) > r.Refusal.Violations[0].Offset {
					t.Errorf("%s: released %q of what is refused", v.ID, released)
				}
			default:
				if len(released) > 0 {
					t.Errorf("%s: released %q of a call", v.ID, released)
				}
			}
		}
	}
}

// TestNativeVectors judges the vectors that are calls as native ones: the same
// verdicts, the same paths, no offsets.
func TestNativeVectors(t *testing.T) {
	k := unlimited(t)
	seen := 0
	for _, v := range corpora.Vectors(t) {
		r := parser.Parse(v.Bytes(t), false, parser.Options{})
		if r.Kind != parser.Call || v.FinishReason != "" || v.Expect.Stage == "parse" || r.Claimed {
			continue
		}
		seen++
		got := k.Kernel.Check(context.Background(), gateway.Request{
			Subject: subjectOf(v), Inputs: []gateway.Input{{Native: &gateway.NativeCall{Name: r.Name, Arguments: r.Arguments}}},
		})
		matches(t, v, got)
		if got.Refusal != nil {
			for _, violation := range got.Refusal.Violations {
				if violation.Offset >= 0 {
					t.Errorf("%s: a native call has the offset %d", v.ID, violation.Offset)
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d vectors are calls", seen)
	}
}
