package configs

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
)

// readBoundaries reads what arguments of a server's tools must stay within.
func readBoundaries(n document.Node, into *map[string]map[string]string) {
	*into = map[string]map[string]string{}
	n.Members("tools and the boundaries of their arguments", func(tool, arguments document.Node) {
		bounds := map[string]string{}
		arguments.Members("arguments and what they stay within", func(argument, kind document.Node) {
			var within string
			kind.Text("path, host, url, workspace, project, or a resource of the projects", &within)
			bounds[argument.Value] = within
		})
		(*into)[tool.Value] = bounds
	})
}

// bounded returns the input schema of a server's tool with x-boundary at the arguments that the
// servers file bounds. An argument that the schema does not declare is a fault: nothing would
// hold what the operator wants to be held. at is the server in its file, which all says.
func (l *loader) bounded(s *lockfile.Server, at document.Node, tool, all string, input json.RawMessage) json.RawMessage {
	bounds := s.Boundaries[tool]
	if len(bounds) == 0 {
		return input
	}
	root, ok := document.ReadJSON(&l.report, all, input)
	if !ok {
		return input
	}
	_, properties, _ := root.Child("properties")
	for _, argument := range slices.Sorted(maps.Keys(bounds)) {
		_, property, declared := properties.Child(argument)
		if !declared || !property.IsMapping() {
			at.At(refusal.Pointer("boundaries", tool, argument)).Fail(
				"found a boundary of the argument %s of %s, whose accepted schema does not declare it; expected an argument of the tool",
				strconv.Quote(argument), strconv.Quote(tool))
			continue
		}
		property.SetText(registry.BoundaryKeyword, bounds[argument]) // also in the place of the server's own
	}
	bounded, ok := root.JSON()
	if !ok {
		return input // it is reported, so that nothing is loaded
	}
	return bounded
}

// warnUnusedBoundaries warns of boundaries of tools that were not accepted.
func (l *loader) warnUnusedBoundaries(c *Config, servers document.Node) {
	for i, s := range c.Servers {
		pins, pinned := c.Pins[s.Name]
		for _, tool := range slices.Sorted(maps.Keys(s.Boundaries)) {
			if pinned && !slices.ContainsFunc(pins, func(p lockfile.Pin) bool { return p.Name == tool }) {
				serverAt(servers, i).At(refusal.Pointer("boundaries", tool)).Warn(
					"the boundaries of %s, which was not accepted from the server %q", strconv.Quote(tool), s.Name)
			}
		}
	}
}

// serverAt is a server in its file.
func serverAt(servers document.Node, i int) document.Node {
	server, _ := servers.Resolve(refusal.Pointer("servers", strconv.Itoa(i)))
	return server
}
