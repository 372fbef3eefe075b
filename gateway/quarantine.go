package gateway

import (
	"bytes"
	"maps"
	"strings"
	"time"

	"github.com/callgate/callgate/gateway/refuse"
)

// Quarantine sets the tools that may not be called until an operator has accepted their
// definitions: those whose server's definition differs from the accepted one, and those
// that were never accepted, which the configuration does not have at all. name@version is
// one version that was never accepted, of a tool that has others, and PREFIX.* all that the
// configuration does not have below a prefix. It replaces the former set, and outlives configurations.
func (k *Kernel) Quarantine(names map[string]bool) {
	names = maps.Clone(names)
	k.quarantine.Store(&names)
}

// quarantined reports whether a tool may not be called now.
func (k *Kernel) quarantined(name string) bool { return k.quarantinedVersion(name, "") }

// quarantinedVersion reports whether a version of a tool may not be called now: because the
// tool may not, or this version alone.
func (k *Kernel) quarantinedVersion(name, version string) bool {
	names := k.quarantine.Load()
	if names == nil || strings.Contains(name, "@") { // which no tool's name has
		return false
	}
	return (*names)[name] || version != "" && (*names)[name+"@"+version]
}

// quarantinedBelow reports whether a tool that the configuration does not have is below a prefix in
// quarantine.
func (k *Kernel) quarantinedBelow(name string) bool {
	names := k.quarantine.Load()
	for at := strings.LastIndexByte(name, '.'); names != nil && at >= 0; at = strings.LastIndexByte(name[:at], '.') {
		if (*names)[name[:at]+".*"] {
			return true
		}
	}
	return false
}

// Starting sets the tools that may not be called yet: those that were accepted, and whose servers have
// not listed their tools since the gateway started, or since they announced a change. Each has the time until its server
// is asked again, 0 while it is asked. Agents are shown them by their accepted
// definitions. It replaces the former set, and outlives configurations.
func (k *Kernel) Starting(names map[string]time.Duration) {
	names = maps.Clone(names)
	k.starting.Store(&names)
}

// Hold sets both, the quarantine first: a tool that goes there from the others is in one of them all the
// time.
func (k *Kernel) Hold(quarantined map[string]bool, starting map[string]time.Duration) {
	k.Quarantine(quarantined)
	k.Starting(starting)
}

// withheld returns the refusal of a tool that may not be called now, by the name that it was called
// by; nil for one that may.
func (k *Kernel) withheld(name, written string) error {
	// Read before the quarantine: a tool goes from here to there, and never back.
	starting := k.starting.Load()
	if k.quarantined(name) {
		return refuse.Quarantined(written)
	}
	if starting != nil {
		if pause, held := (*starting)[name]; held {
			return refuse.Starting(written, pause)
		}
	}
	return nil
}

// redefinedSince reports whether another definition of a call's tool was accepted since its
// judgement pinned a configuration. The quarantine follows the current accepted definition,
// and the tool's server may no longer have the one that would judge the call.
func (c *Call) redefinedSince() bool {
	now := c.kernel.config.Load()
	if now == c.config || c.tool.SharedRun().Server == "" {
		return false
	}
	tool, ok := now.Tools.LookupVersion(c.tool.Name(), c.tool.Version())
	return !ok || tool.SharedRun().Server != c.tool.SharedRun().Server || tool.Description() != c.tool.Description() ||
		!bytes.Equal(tool.InputSchema(), c.tool.InputSchema()) || !bytes.Equal(tool.OutputSchema(), c.tool.OutputSchema())
}
