package gateway

import (
	"bytes"
	"maps"
	"strings"
)

// Quarantine sets the tools that may not be called until an operator has accepted their
// definitions: those whose server's definition differs from the accepted one, and those
// that were never accepted, which the configuration does not have at all. name@version is
// one version that was never accepted, of a tool that has others. It replaces the former
// set, and outlives configurations.
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
