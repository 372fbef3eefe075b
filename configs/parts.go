package configs

import (
	"fmt"
	"slices"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/upstream"
)

// Part is a part of Callgate that a program may be built without. What a configuration asks of one that is not
// there is refused, but for the console: true is the default of its key, and there are no pages then.
type Part string

// The parts, in the words of messages.
const (
	ResponsesFace Part = "the face of OpenAI Responses"
	Console       Part = "the console"
	RedisLimiter  Part = "the limiter on Redis"
	ACPProxy      Part = "the proxy for agents of ACP"
)

// CheckParts refuses a configuration that asks for a part that a program does not have. The error is Faults, at
// the places that ask.
func (c *Config) CheckParts(has func(Part) bool) error {
	var faults document.Faults
	for p, places := range c.asks {
		if !has(p) {
			faults = append(faults, places...)
		}
	}
	if faults == nil {
		return nil
	}
	faults.Sort()
	return faults
}

// asksFor keeps that a configuration asks for a part at a node.
func (c *Config) asksFor(p Part, at document.Node, found string) {
	if c.asks == nil {
		c.asks = map[Part]document.Faults{}
	}
	c.asks[p] = append(c.asks[p], at.Fault("found %[1]s; expected no %[1]s: this program was built without %[2]s", found, p))
}

// asksForWires keeps which upstreams speak an API whose face is a part.
func (c *Config) asksForWires(root document.Node, models []upstream.Definition) {
	speaks := func(at string, r *upstream.Rules) bool {
		if !slices.Contains(r.Speaks, upstream.ResponsesWire) {
			return false
		}
		c.asksFor(ResponsesFace, root.At(at+"/speaks"), string(upstream.ResponsesWire))
		return true
	}
	for i := range models {
		at := fmt.Sprintf("/upstreams/%d", i)
		if speaks(at, &models[i].Rules) {
			continue
		}
		for j := range models[i].Models {
			if m := &models[i].Models[j]; m.Rules != nil {
				speaks(fmt.Sprintf("%s/models/%d", at, j), m.Rules)
			}
		}
	}
}
