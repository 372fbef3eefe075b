package configs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// readServers reads the servers file.
func readServers(root document.Node) []lockfile.Server {
	var all []lockfile.Server
	names, prefixes := map[string]document.Node{}, map[string]document.Node{}
	once := func(seen map[string]document.Node, what, value string, item document.Node) {
		if first, twice := seen[value]; twice && value != "" {
			item.Fail("found the %s %q a second time; expected each once (first at %s:%d)", what, value, first.File, first.Line)
		}
		seen[value] = item
	}
	root.Object(document.Field("servers", func(n document.Node) {
		n.List("servers", func(_ int, item document.Node) {
			s := readToolServer(item)
			once(names, "server", s.Name, item)
			once(prefixes, "prefix", s.Prefix, item)
			all = append(all, s)
		})
	}))
	return all
}

// readToolServer reads one tool server. It also makes the checks that loading a tool would
// make, since a server has no tools before the first is accepted.
func readToolServer(n document.Node) lockfile.Server {
	s := lockfile.Server{}
	ok := n.Object(document.Fields(&s,
		document.Field("command", func(n document.Node) { n.ReadCommand(&s.Command, &s.Folder) }),
		document.Field("env", func(n document.Node) { secret.ReadEnv(n, &s.Env) }),
		document.Field("credential", func(n document.Node) { s.Credential = toolfile.ReadCredential(n) }),
		document.Field("allow", func(n document.Node) {
			s.Allow = []string{} // an empty list allows nothing
			n.List("names of tools", func(_ int, item document.Node) { readPattern(item, &s.Allow) })
		}),
		document.Field("effects", func(n document.Node) {
			s.Effects = map[string]string{}
			n.Members("tools and their effects", func(key, value document.Node) {
				var effect string
				document.ReadChoice(value, "what calling it twice does", &effect, registry.Effects()...)
				s.Effects[key.Value] = effect
			})
		}),
		document.Field("labels", func(n document.Node) { readLabels(n, &s.Labels) }),
		document.Field("boundaries", func(n document.Node) { readBoundaries(n, &s.Boundaries) }),
		document.Texts("input_requests", "kinds of questions", &s.InputRequests).Among(tool.QuestionKinds()...).Unique(),
	)...)
	n.Describes(func(s *document.Schema) {
		s.OneOf = []*document.Schema{{Required: []string{"url"}}, {Required: []string{"command"}}}
	})
	if !ok || !n.Requires("found a server without %s; expected name, type, and url or command", "name", "type") {
		return s
	}
	if s.Prefix == "" {
		s.Prefix = s.Name
	}
	switch {
	case n.Has("url") && n.Has("command"):
		n.Fail("found the server %q with both url and command; expected one of them", s.Name)
	case n.Has("command") && s.Type != lockfile.MCP:
		n.Fail("found the server %q with a command; expected a url, since its type is %s", s.Name, s.Type)
	case !n.Has("url") && !n.Has("command"):
		n.Fail("found the server %q without url and command; expected one of them", s.Name)
	case n.Has("start_timeout") && !n.Has("command"):
		n.Fail("found the server %q with start_timeout and without a command; expected it only for programs", s.Name)
	default:
		checkRun(n, s)
	}
	return s
}

// checkRun reports what every tool of the server would be refused for.
func checkRun(n document.Node, s lockfile.Server) {
	// A name and a version as every protocol has them.
	reportRun(n, fmt.Sprintf("server %q", s.Name), s.ToolName("tool"), s.Run(lockfile.Pin{Name: "a.tool", Version: "1.0.0"}))
}

// reportRun reports what a tool would be refused for that is run so.
func reportRun(n document.Node, of, name string, run tool.Run) {
	_, err := registry.New([]registry.Tool{{Name: name, InputSchema: []byte(`{"type":"object"}`), Run: run}})
	if err == nil {
		return
	}
	for _, f := range toolfile.LoadErrors(err) {
		at := n
		for _, key := range f.Field[min(1, len(f.Field)):] {
			if _, value, ok := at.Child(key); ok {
				at = value
			}
		}
		at.Fail("%s: %s", of, f.Message)
	}
}

// readPattern reads a name, or how names begin.
func readPattern(n document.Node, into *[]string) {
	const of = "the name of a tool, or how names begin and a *"
	var s string
	n.Text(of, &s)
	n.Matching(of, `^[^*]+\*?$|^\*$`)
	if strings.Contains(strings.TrimSuffix(s, "*"), "*") {
		n.Fail("found %s; expected a * only at its end, where it stands for the rest of a name", n.Describe())
	}
	*into = append(*into, s)
}

// readLockfiles reads the tools of every server that an operator has accepted.
func (l *loader) readLockfiles(c *Config, servers document.Node) []toolfile.Tool {
	var entries []toolfile.Tool
	for number := range c.Servers {
		s := &c.Servers[number]
		file := lockfile.Path(cmp.Or(l.lockfileDir, c.DataDir), s.Name)
		data, err := l.files.ReadFile(file)
		if document.IsAbsent(err) {
			continue // nothing was accepted yet
		}
		if err != nil {
			l.report.Add(&document.Fault{File: file, Message: err.Error()})
			continue
		}
		l.addFile(file, "servers/"+s.Name+".json", data)
		pins, nodes := lockfile.Read(&l.report, file, s.Name, data)
		c.Pins[s.Name] = pins
		for i, p := range pins {
			if !s.Allows(p.Name) {
				continue
			}
			entries = append(entries, toolfile.Tool{Definition: registry.Tool{
				Name: s.ToolName(p.Name), Version: p.Version, Description: wrapper.EscapeHidden(p.Description), Effect: s.Effects[p.Name],
				Labels: labelsOf(s),
				InputSchema: l.bounded(s, serverAt(servers, number), p.Name, file,
					toolfile.VisibleSchema(nodes[i], "input_schema", p.InputSchema)),
				OutputSchema: toolfile.VisibleSchema(nodes[i], "output_schema", p.OutputSchema), Run: s.Run(p),
			}, Node: func(*document.Report) document.Node { return nodes[i] }})
		}
	}
	return entries
}

// labelsOf are the labels of each tool of a server; nil where it states none.
func labelsOf(s *lockfile.Server) []registry.Label {
	if s.Labels == nil {
		return nil
	}
	labels := make([]registry.Label, len(s.Labels))
	for i, name := range s.Labels {
		labels[i].Name = name
	}
	return labels
}

// warnUnusedEffects warns of effects that no tool has.
func (l *loader) warnUnusedEffects(c *Config) {
	for _, s := range c.Servers {
		for name := range s.Effects {
			if pins, ok := c.Pins[s.Name]; ok && !slices.ContainsFunc(pins, func(p lockfile.Pin) bool { return p.Name == name }) {
				l.report.Warnings = append(l.report.Warnings,
					&document.Fault{File: c.ServersFile,
						Message: fmt.Sprintf("the effect of %q, which was not accepted from the server %q", name, s.Name)})
			}
		}
	}
}
