package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

// vectorVerdict is the answer of a face to a completion, as far as vectors fix it.
type vectorVerdict struct{ Verdict, Code, Stage, Path string }

// vectors are completions with their verdicts, and the main file that they are judged
// by.
type vectors struct {
	config  string
	all     []corpora.Vector
	checked map[string]printed // by id, what the command line says, once it was asked
}

func vectorsOf(config string, all []corpora.Vector) vectors {
	return vectors{config, all, map[string]printed{}}
}

// everyVector are the public vectors and the project's own.
func everyVector(t testing.TB) vectors { return vectorsOf(vectorConfig, corpora.Vectors(t)) }

// sample are every sixteenth of the vectors, from one of the first sixteen on.
func (of vectors) sample(first int) vectors {
	const step = 16
	var some []corpora.Vector
	for i := first % step; i < len(of.all); i += step {
		some = append(some, of.all[i])
	}
	return vectorsOf(of.config, some)
}

// carry brings a vector to a face and hears its answer. It is false where the
// face cannot carry the vector's bytes.
type carry func(t *testing.T, v corpora.Vector) (vectorVerdict, bool)

// face is a way to bring a completion to the gateway, with what starts it.
type face struct {
	name string
	open func(t *testing.T, of vectors) carry
}

// faces are all ways to bring a completion to the gateway: a rule that holds on
// one holds on every other.
var faces = []face{
	{"the command line", func(_ *testing.T, of vectors) carry { return of.byCommand }},
	{"lines", func(t *testing.T, of vectors) carry { return byLine(t, of, false) }},
	{"lines of base64", func(t *testing.T, of vectors) carry { return byLine(t, of, true) }},
	{"native, JSON", func(t *testing.T, of vectors) carry { return natively(t, of, asJSON) }},
	{"native, text", func(t *testing.T, of vectors) carry { return natively(t, of, asText) }},
	{"chat", func(t *testing.T, of vectors) carry { return chatting(t, of, chat{mode: "enforce"}) }},
	{"chat, streamed whole", func(t *testing.T, of vectors) carry { return chatting(t, of, chat{mode: "enforce", cut: whole}) }},
	{"chat, by character", func(t *testing.T, of vectors) carry { return chatting(t, of, chat{mode: "enforce", cut: byCharacter}) }},
	{"chat, cut at random", func(t *testing.T, of vectors) carry { return chatting(t, of, chat{mode: "enforce", cut: atRandom()}) }},
	{"chat, held whole", func(t *testing.T, of vectors) carry {
		return chatting(t, of, chat{mode: "enforce", cut: atRandom(), held: true})
	}},
	{"chat, executed here", func(t *testing.T, of vectors) carry { return chatting(t, of, chat{mode: "orchestrate"}) }},
	{"chat, executed here, by character", func(t *testing.T, of vectors) carry {
		return chatting(t, of, chat{mode: "orchestrate", cut: byCharacter})
	}},
	{"acp", func(t *testing.T, of vectors) carry { return byACP(t, of, whole) }},
	{"acp, by character", func(t *testing.T, of vectors) carry { return byACP(t, of, byCharacter) }},
	{callsOnly + "oxp", byOXP},
	{callsOnly + "responses", byResponses("whole")},
	{callsOnly + "responses, in deltas", byResponses("deltas")},
	{callsOnly + "responses, at the end of the arguments", byResponses("done")},
	{callsOnly + "responses, in output_item.done", byResponses("item")},
	{callsOnly + "responses, in output_item.added", byResponses("added")},
	{callsOnly + "responses, in the terminal event", byResponses("terminal")},
	{callsOnly + "messages", byMessages("whole")},
	{callsOnly + "messages, in deltas", byMessages("deltas")},
	{callsOnly + "messages, in content_block_start", byMessages("start")},
	{callsOnly + "messages, in message_start", byMessages("message")},
	{callsOnly + "mcp, 2026-07-28", func(t *testing.T, of vectors) carry { return byMCP(t, of, "2026-07-28", configs.NamesWire) }},
	{callsOnly + "mcp, 2025-11-25", func(t *testing.T, of vectors) carry { return byMCP(t, of, "2025-11-25", configs.NamesWire) }},
	{callsOnly + "mcp, names of the registry", func(t *testing.T, of vectors) carry {
		return byMCP(t, of, "2025-11-25", configs.NamesRegistry)
	}},
	{wellFormed + "acp, permissions of an agent", byProxy},
	{wellFormed + "hooks of coding agents", byAgentHook},
}

// callsOnly begins the names of faces whose calls come apart, and which bring nothing
// else.
const callsOnly = "calls: "

// wellFormed begins those of faces whose calls stand as values within a message, so that faults
// of their bytes are faults of the message.
const wellFormed = callsOnly + "well-formed: "

// requires skips a test of a part that the program was built without.
func requires(t testing.TB, p configs.Part) {
	t.Helper()
	if !app.Has(p) {
		t.Skipf("skipped: this program was built without %s", p)
	}
}

// facesOnce are all faces; with -short the first of each protocol, for tests that ask a face little
// and begin a gateway for it.
func facesOnce() []face {
	protocols := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(faces), func(f face) bool {
		protocol, _, _ := strings.Cut(f.name, ",")
		again := protocols[protocol]
		protocols[protocol] = true
		return again && testing.Short()
	})
}

// TestEveryFace brings the vectors to every face, in order. With -short each face gets a
// sixteenth of them, the next face the next.
func TestEveryFace(t *testing.T) {
	t.Parallel()
	every := everyVector(t)
	for n, f := range faces {
		t.Run(f.name, func(t *testing.T) {
			of := every
			if testing.Short() {
				of = every.sample(n)
			}
			carry := f.open(t, of)
			count, expected := 0, 0
			for _, v := range of.all {
				_, _, call := bytesCalled(t, v)
				if strings.HasPrefix(f.name, wellFormed) {
					_, _, call = called(t, v)
				}
				if call || !strings.HasPrefix(f.name, callsOnly) {
					expected++
				}
				if carried(t, carry, v) {
					count++
				}
			}
			least := expected * 9 / 10
			if strings.HasPrefix(f.name, callsOnly) {
				least = expected * 8 / 10 // not every name that a model makes up fits
			}
			if count < least {
				t.Errorf("the face carries only %d of %d vectors", count, expected)
			}
		})
	}
}

// carried brings one vector to a face and holds what it says against the verdict. It is
// false where the face cannot carry it.
func carried(t *testing.T, carry carry, v corpora.Vector) bool {
	t.Helper()
	got, ok := carry(t, v)
	if !ok {
		return false
	}
	want := vectorVerdict{Verdict: v.Expect.Verdict, Code: v.Expect.Code, Stage: v.Expect.Stage, Path: got.Path}
	if v.Expect.Path != nil {
		want.Path = *v.Expect.Path
	}
	if got != want {
		t.Errorf("%s: heard %+v, want %+v", v.ID, got, want)
	}
	return true
}

// TestSN35EveryFace: with output.agent: required, every face that brings completions
// refuses a call without the member "agent".
func TestSN35EveryFace(t *testing.T) {
	t.Parallel()
	config, all := corpora.AgentVectors(t)
	of := vectorsOf(config, all)
	for _, f := range facesOnce() {
		if strings.HasPrefix(f.name, callsOnly) {
			continue // their calls have no such member: TestSN35CallsOnly
		}
		t.Run(f.name, func(t *testing.T) {
			carry := f.open(t, of)
			for _, v := range all {
				if !carried(t, carry, v) {
					t.Errorf("%s: the face cannot carry it", v.ID)
				}
			}
		})
	}
}

// TestSN35CallsOnly: a face whose calls have no place for the member "agent" needs a
// request that names it.
func TestSN35CallsOnly(t *testing.T) {
	t.Parallel()
	config, all := corpora.AgentVectors(t)
	at := slices.IndexFunc(all, func(v corpora.Vector) bool { return v.ID == "agent-absent" })
	if at < 0 {
		t.Fatal("there is no vector without an agent")
	}
	for _, f := range facesOnce() {
		if !strings.HasPrefix(f.name, callsOnly) {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			carry := f.open(t, vectorsOf(config, all))
			unnamed, named := all[at], all[at]
			unnamed.Agent = ""
			named.Expect.Verdict, named.Expect.Code, named.Expect.Stage = "tool_call", "", ""
			for _, v := range []corpora.Vector{unnamed, named} {
				if !carried(t, carry, v) {
					t.Errorf("for the agent %q: the face cannot carry it", v.Agent)
				}
			}
		})
	}
}
