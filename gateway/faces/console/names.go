package console

import (
	"net/url"

	"github.com/callgate/callgate/gateway/faces/admin"
	"github.com/callgate/callgate/refusal"
)

// maxNames bounds how many names of a kind a form suggests.
const maxNames = 500

// names are those that forms suggest: of the configuration in force, and the codes of refusals.
type names struct{ Agents, Tools, Projects, Codes []string }

func namesOf(c *admin.Configuration) names {
	bounded := func(list []string) []string { return list[:min(len(list), maxNames)] }
	n := names{Agents: c.Agents, Tools: bounded(c.ToolNames), Projects: bounded(c.Projects)}
	for _, code := range refusal.Codes() {
		n.Codes = append(n.Codes, string(code))
	}
	return n
}

// suggestion is a datalist.
type suggestion struct {
	ID    string
	Names []string
}

// As returns the names of a kind, which is also the id of their datalist.
func (n names) As(kind string) suggestion {
	return suggestion{kind, map[string][]string{"agents": n.Agents[:min(len(n.Agents), maxNames)], "tools": n.Tools, "projects": n.Projects,
		"codes": n.Codes}[kind]}
}

// agentPath and toolPath are the addresses of the pages of an agent and a tool.
func agentPath(name string) string { return "/console/agents/" + url.PathEscape(name) }
func toolPath(name string) string  { return "/console/tools/" + url.PathEscape(name) }

// noVersion is the version of a tool whose file states none.
const noVersion = "0.0.0"

// version is a version as pages show it: nothing where none was stated.
func version(v string) string {
	if v == noVersion {
		return ""
	}
	return v
}
