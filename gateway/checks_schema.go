package gateway

import (
	"context"
	"fmt"
	"strings"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/gateway/violations"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
)

// maxNear is how many near names a refusal offers.
const maxNear = 3

// findTool is the first step of the stage schema: the tool is registered under that
// very name. Near names that this agent may use are offered, never used.
func findTool(_ context.Context, c *Call) error {
	tool, ok := c.lookupTool()
	// A tool that the request has brought cannot be run here.
	ok = ok && (c.mode == ModeEnforce || tool.Index() >= 0)
	if ok && c.constraints().offers(c.parsed.Name) {
		c.tool = tool
		return nil
	}
	apart := c.kernel.quarantinedVersion(c.parsed.Name, c.version()) || c.kernel.quarantinedBelow(c.parsed.Name)
	if other := c.hasOtherVersion(); !ok && (apart || other) && c.constraints().offers(c.parsed.Name) {
		ever, err := c.canReach(c.parsed.Name)
		switch {
		case err != nil:
			return err
		case !ever:
			return refuse.Denied(c.WrittenName())
		case apart:
			return refuse.Quarantined(c.WrittenName())
		}
		return refuse.UnknownVersion(c.WrittenName(), c.version())
	}
	near := c.config.Tools.Suggest(c.WrittenName(), func(name string) bool {
		ever, err := c.canReach(name)
		return ever && err == nil && c.constraints().offers(name) && !c.kernel.quarantined(name)
	}, maxNear)
	if c.usesWireName() {
		for i, name := range near {
			near[i], _ = c.nameMap().Wire(name)
		}
	}
	message := fmt.Sprintf("There is no tool %s. Use the exact name of a tool that you were given.", parser.Quote(c.WrittenName()))
	if len(near) > 0 {
		message = fmt.Sprintf("There is no tool %s. Did you mean %s? Send the call again with the exact name.",
			parser.Quote(c.WrittenName()), strings.Join(near, " or "))
	}
	refused := refusal.New(refusal.UnknownTool, message)
	refused.DidYouMean = near
	refused.Violations = []refusal.Violation{{Code: refusal.UnknownTool, Path: "/tool/name", Offset: c.parsed.NameOffset, Message: message}}
	return refused
}

// checkStarted is the second step of the stage schema: the tool's server has listed its tools since
// the gateway started. A tool that went to the quarantine after checkReach has looked is refused, too.
func checkStarted(ctx context.Context, c *Call) error {
	if await := c.kernel.deps.AwaitTool; await != nil {
		await(ctx, c.tool.Name())
	}
	return c.kernel.withheld(c.tool.Name(), c.WrittenName())
}

// isWithheld reports whether a call's tool may not be called now.
func isWithheld(c *Call) bool { return c.kernel.withheld(c.tool.Name(), c.WrittenName()) != nil }

// lookupTool returns the tool that the call names. A name in a smaller alphabet stands for
// one tool only.
func (c *Call) lookupTool() (*registry.Entry, bool) {
	if !c.wireNameMatches() {
		return nil, false
	}
	if version := c.version(); version != "" {
		return c.config.Tools.LookupVersion(c.parsed.Name, version)
	}
	return c.config.Tools.Lookup(c.parsed.Name)
}

// hasOtherVersion reports whether the call names a version and the tool exists in another.
func (c *Call) hasOtherVersion() bool {
	_, known := c.config.Tools.Lookup(c.parsed.Name)
	return known && c.version() != "" && c.wireNameMatches()
}

// wireNameMatches reports whether the name on the wire stands for the tool name that is
// judged.
func (c *Call) wireNameMatches() bool {
	if !c.usesWireName() {
		return true
	}
	name, ok := c.nameMap().Name(c.input.Native.Wire)
	return ok && name == c.parsed.Name
}

// nameMap are those of the wire that the call came by.
func (c *Call) nameMap() *registry.NameMap { return c.config.namesFor(c.input.Native.Alphabet) }

// version is the one that is called; empty is the highest.
func (c *Call) version() string {
	if c.input.Native == nil {
		return ""
	}
	return c.input.Native.Version
}

// usesWireName reports whether the model's tool names are in a smaller alphabet.
func (c *Call) usesWireName() bool { return c.input.Native != nil && c.input.Native.Wire != "" }

// WrittenName is the name that the model wrote, known or not. Messages say it: the
// model can use no other.
func (c *Call) WrittenName() string {
	if c.usesWireName() {
		return c.input.Native.Wire
	}
	return c.parsed.Name
}

// validateArguments is the third step: the arguments fit the tool's closed schema.
func validateArguments(_ context.Context, c *Call) error {
	return violations.OfArguments(c.tool, c.WrittenName(), c.source(), c.arguments)
}

// isStructured reports whether a text is JSON that its request has a schema for.
func isStructured(c *Call) bool { return c.parsed.JSON != nil }

// checkOutput is the step of the stage schema for texts: the JSON of an answer is by the schema of the request.
func checkOutput(_ context.Context, c *Call) error {
	err := violations.OfOutput(c.input.Output, c.parsed.JSON, c.parsed.JSONOffset)
	if err != nil {
		c.parsed.Kind, c.parsed.Text = parser.Refused, nil
	}
	return err
}

// source is where the arguments stand in the completion. A native call has none, and arguments that
// hooks have redacted stand nowhere.
func (c *Call) source() violations.Source {
	return violations.Source{Arguments: c.parsed.Arguments, Offset: c.parsed.ArgumentsOffset,
		Nowhere: c.input.Native != nil || c.hooks.unredacted != nil}
}
