package gateway

import (
	"bytes"
	"maps"
	"strings"
)

// Quarantine says which tools may not be called until an operator has accepted
// their definitions: those of which a server says something else than what was
// accepted, and those that were never accepted, which the configuration does not
// have at all. name@version is one version that was never accepted, of a tool that has
// others. It replaces what was said before, and outlives configurations.
func (k *Kernel) Quarantine(names map[string]bool) {
	names = maps.Clone(names)
	k.quarantine.Store(&names)
}

// quarantined tells whether a tool may not be called now.
func (k *Kernel) quarantined(name string) bool { return k.quarantinedVersion(name, "") }

// quarantinedVersion tells whether a version of a tool may not be called now, be that
// of the tool or of this version alone.
func (k *Kernel) quarantinedVersion(name, version string) bool {
	names := k.quarantine.Load()
	if names == nil || strings.Contains(name, "@") { // which no tool's name has
		return false
	}
	return (*names)[name] || version != "" && (*names)[name+"@"+version]
}

// redefinedSince tells whether something else was accepted of the tool of a call since
// its judgement pinned a configuration. Quarantine goes by what is accepted now, and
// the tool's server may say no more what the call would be judged by.
func (c *Call) redefinedSince() bool {
	now := c.kernel.config.Load()
	if now == c.config || c.tool.Run().Server == "" {
		return false
	}
	tool, ok := now.Tools.LookupVersion(c.tool.Name(), c.tool.Version())
	return !ok || tool.Run().Server != c.tool.Run().Server || tool.Description() != c.tool.Description() ||
		!bytes.Equal(tool.InputSchema(), c.tool.InputSchema()) || !bytes.Equal(tool.OutputSchema(), c.tool.OutputSchema())
}
