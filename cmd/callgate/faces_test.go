package main

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/corpora"
)

// heard is what a face says of a completion, as far as vectors fix it.
type heard struct{ Verdict, Code, Stage, Path string }

// carry brings a vector to a face and hears its answer. It is false where the
// face cannot carry the vector's bytes.
type carry func(t *testing.T, v corpora.Vector) (heard, bool)

// faces are all ways to bring a completion to the gateway, each with what starts
// it: a rule that holds on one holds on every other.
var faces = []struct {
	name string
	open func(t *testing.T) carry
}{
	{"the command line", func(*testing.T) carry { return byCommand }},
	{"lines", func(t *testing.T) carry { return byLine(t, false) }},
	{"lines of base64", func(t *testing.T) carry { return byLine(t, true) }},
	{"native, JSON", func(t *testing.T) carry { return natively(t, asJSON) }},
	{"native, text", func(t *testing.T) carry { return natively(t, asText) }},
	{"chat", func(t *testing.T) carry { return chatting(t, chat{mode: "enforce"}) }},
	{"chat, streamed whole", func(t *testing.T) carry { return chatting(t, chat{mode: "enforce", cut: whole}) }},
	{"chat, by character", func(t *testing.T) carry { return chatting(t, chat{mode: "enforce", cut: byCharacter}) }},
	{"chat, cut at random", func(t *testing.T) carry { return chatting(t, chat{mode: "enforce", cut: atRandom()}) }},
	{"chat, held whole", func(t *testing.T) carry { return chatting(t, chat{mode: "enforce", cut: atRandom(), held: true}) }},
	{"chat, executed here", func(t *testing.T) carry { return chatting(t, chat{mode: "orchestrate"}) }},
	{"chat, executed here, by character", func(t *testing.T) carry { return chatting(t, chat{mode: "orchestrate", cut: byCharacter}) }},
	{callsOnly + "oxp", byOXP},
	{callsOnly + "mcp, 2026-07-28", func(t *testing.T) carry { return byMCP(t, "2026-07-28") }},
	{callsOnly + "mcp, 2025-11-25", func(t *testing.T) carry { return byMCP(t, "2025-11-25") }},
}

// callsOnly begins the names of faces whose calls come apart, and which bring nothing
// else.
const callsOnly = "calls: "

// TestEveryFace brings the one file of vectors to every face, in order.
func TestEveryFace(t *testing.T) {
	vectors := corpora.Vectors(t)
	for _, f := range faces {
		t.Run(f.name, func(t *testing.T) {
			carry := f.open(t)
			carried, meant := 0, 0
			for _, v := range vectors {
				if _, _, call := bytesCalled(t, v); call || !strings.HasPrefix(f.name, callsOnly) {
					meant++
				}
				got, ok := carry(t, v)
				if !ok {
					continue
				}
				carried++
				want := heard{Verdict: v.Expect.Verdict, Code: v.Expect.Code, Stage: v.Expect.Stage, Path: got.Path}
				if v.Expect.Path != nil {
					want.Path = *v.Expect.Path
				}
				if got != want {
					t.Errorf("%s: heard %+v, want %+v", v.ID, got, want)
				}
			}
			least := meant * 9 / 10
			if strings.HasPrefix(f.name, callsOnly) {
				least = meant * 8 / 10 // not every name that a model makes up fits
			}
			if carried < least {
				t.Errorf("the face carries only %d of %d vectors", carried, meant)
			}
		})
	}
}
