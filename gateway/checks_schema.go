package gateway

import (
	"context"
	"fmt"
	"strings"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/registry/schema"
)

// maxNear is how many near names a refusal offers.
const maxNear = 3

// find is the first step of the stage schema: the tool is registered under that
// very name. Near names that this agent may use are offered, never used.
func find(_ context.Context, c *call) error {
	tool, ok := c.lookup()
	if ok && c.terms().offers(c.parsed.Name) {
		c.tool = tool
		return nil
	}
	if apart, other := c.kernel.quarantinedVersion(c.parsed.Name, c.version()), c.otherVersion(); !ok && (apart || other) && c.terms().offers(c.parsed.Name) {
		ever, err := c.reaches(c.parsed.Name)
		switch {
		case err != nil:
			return err
		case !ever:
			return denied(c.written())
		case apart:
			return quarantine(c.written())
		}
		return noVersion(c.written(), c.version())
	}
	near := c.state.Tools.Suggest(c.written(), func(name string) bool {
		ever, err := c.reaches(name)
		return ever && err == nil && c.terms().offers(name) && !c.kernel.quarantined(name)
	}, maxNear)
	if c.wired() {
		for i, name := range near {
			near[i], _ = c.names().Wire(name)
		}
	}
	message := fmt.Sprintf("There is no tool %s. Use the exact name of a tool that you were given.", parser.Quote(c.written()))
	if len(near) > 0 {
		message = fmt.Sprintf("There is no tool %s. Did you mean %s? Send the call again with the exact name.", parser.Quote(c.written()), strings.Join(near, " or "))
	}
	refused := refusal.New(refusal.UnknownTool, message)
	refused.DidYouMean = near
	refused.Violations = []refusal.Violation{{Code: refusal.UnknownTool, Path: "/tool/name", Offset: c.parsed.NameOffset, Message: message}}
	return refused
}

// lookup returns the tool that the call names. A name of a smaller alphabet is
// that of the tool which it stands for, and of no other.
func (c *call) lookup() (*registry.Entry, bool) {
	if !c.stands() {
		return nil, false
	}
	if version := c.version(); version != "" {
		return c.state.Tools.LookupVersion(c.parsed.Name, version)
	}
	return c.state.Tools.Lookup(c.parsed.Name)
}

// otherVersion tells whether a version was asked of a tool that is there.
func (c *call) otherVersion() bool {
	_, known := c.state.Tools.Lookup(c.parsed.Name)
	return known && c.version() != "" && c.stands()
}

// stands tells whether the name on the wire stands for the one that is judged.
func (c *call) stands() bool {
	if !c.wired() {
		return true
	}
	name, ok := c.names().Name(c.input.Native.Wire)
	return ok && name == c.parsed.Name
}

// names are those of the wire that the call came by.
func (c *call) names() *registry.NameMap { return c.state.alphabet(c.input.Native.Alphabet) }

// version is the one that is called; empty is the highest.
func (c *call) version() string {
	if c.input.Native == nil {
		return ""
	}
	return c.input.Native.Version
}

// noVersion refuses a version that a tool does not have.
func noVersion(tool, version string) error {
	message := fmt.Sprintf("There is no version %s of %s. Use a version that you were given, or name none.", parser.Quote(version), parser.Quote(tool))
	refused := refusal.New(refusal.UnknownTool, message)
	refused.Violations = []refusal.Violation{{Code: refusal.UnknownTool, Path: "/tool/name", Offset: -1, Message: message}}
	return refused
}

// wired tells whether the model knows tools by names of a smaller alphabet.
func (c *call) wired() bool { return c.input.Native != nil && c.input.Native.Wire != "" }

// written is the name that the model wrote, known or not. Messages say it: the
// model can use no other.
func (c *call) written() string {
	if c.wired() {
		return c.input.Native.Wire
	}
	return c.parsed.Name
}

// validate is the second step: the arguments are what the tool's closed schema
// asks for.
func validate(_ context.Context, c *call) error {
	faults := c.tool.EvaluateAs(c.written(), c.args)
	if len(faults) == 0 {
		return nil
	}
	places := make([]parser.Place, len(faults))
	violations := make([]refusal.Violation, len(faults))
	for i, f := range faults {
		places[i] = parser.Place{Path: f.Path, Part: parts[f.At]}
		violations[i] = refusal.Violation{Code: f.Code, Path: pointer(f.Path), Message: f.Message}
	}
	c.offsets(violations, places)
	refusal.Sort(violations)
	refused := refusal.At(refusal.Schema, violations[0].Code, summary(violations))
	refused.Violations = violations
	for _, f := range faults {
		if f.Cause != nil {
			return refused.WithCause(f.Cause)
		}
	}
	return refused
}

// parts says which bytes a fault of the schema points at.
var parts = map[schema.Place]parser.PlacePart{
	schema.Value:  parser.Value,
	schema.Name:   parser.Name,
	schema.Parent: parser.Enclosing,
}
