package starter

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/upstream"
)

func mainFile(o Options) string {
	var b strings.Builder
	b.WriteString("# A gateway for this machine; docs/reference.md lists all keys.\n")
	b.WriteString("# Callers are not authenticated, so only this machine may connect.\n")
	b.WriteString("auth: {mode: none}\n")
	fmt.Fprintf(&b, "defaults: {agent: %s, workspace: %s, project: %s}\n", quoted(o.Agent), Workspace, Project)
	if o.Tools.File != nil {
		b.WriteString("registry: {files: [tools.yaml]}\n")
	} else {
		b.WriteString("registry: {files: []} # the servers have the tools\n")
	}
	if len(o.Tools.Servers) > 0 {
		b.WriteString("servers: servers.yaml\n")
	}
	if o.Upstream != "" {
		b.WriteString("upstreams: upstreams.yaml\n")
	}
	b.WriteString("# The log keeps arguments, so that `callgate audit show` can say why a call was refused. digest keeps none.\n")
	b.WriteString("audit: {record: arguments}\n")
	b.WriteString("# end\n")
	return b.String()
}

func workspaces(agent string) string {
	return fmt.Sprintf(`# Which agents work on which project. An argument with x-boundary must stay within
# the lists of the project: roots (folders), hosts, resources. There are none yet.
workspaces:
  %s:
    projects:
      %s:
        agents: [%s]
# end
`, Workspace, Project, quoted(agent))
}

func access(o Options) string {
	var b strings.Builder
	b.WriteString("# Who may use which tool. What no row allows is denied.\n")
	b.WriteString("# p, agent, workspace/project, tool, condition, effect\n")
	for _, pattern := range o.Allow {
		fmt.Fprintf(&b, "p, %s, %s/%s, %s, , allow\n", o.Agent, Workspace, Project, pattern)
	}
	if len(o.Allow) == 0 {
		fmt.Fprintf(&b, "# for instance: p, %s, %s/%s, TOOL, , allow\n", o.Agent, Workspace, Project)
	}
	b.WriteString("# end\n")
	return b.String()
}

const limits = `# How often an agent may call, and how many calls may run at the same time.
default: {rate: 5/s, burst: 20, concurrency: 8}
# end
`

// upstreams is the file of the model. Where the application runs the tools, each call goes back to
// it; else Callgate runs them.
func upstreams(o Options) (string, error) {
	mode, protocol := "orchestrate, enforce", upstream.ChatWire
	if o.Tools.Client {
		mode = "enforce"
	}
	if o.Tools.Protocol != "" {
		protocol = o.Tools.Protocol
	}
	var b strings.Builder
	b.WriteString("# The model. orchestrate: Callgate runs the tools; enforce: the application does.\n")
	fmt.Fprintf(&b, "upstreams:\n  - name: model\n    base_url: %s\n", quoted(o.Upstream))
	if o.UpstreamKey != "" {
		place, err := keyPlace(o.UpstreamKey)
		if err != nil {
			return "", err
		}
		if protocol == upstream.MessagesWire {
			fmt.Fprintf(&b, "    credential: {in: header, name: X-Api-Key, value: %s}\n", quoted(place))
		} else {
			fmt.Fprintf(&b, "    key: %s\n", quoted(place))
		}
	}
	fmt.Fprintf(&b, "    speaks: [%s]\n    models: [\"*\"]\n    modes: [%s]\n# end\n", protocol, mode)
	return b.String(), nil
}

// Example is the tools of a configuration without a source of them.
func Example() Tools {
	return Tools{Names: []string{"notes.add", "notes.clear"}, allow: []string{"notes.add"}, File: []byte(`# Your tools. Both return their arguments; run: {type: http, url: "https://…"} calls yours.
tools:
  - name: notes.add
    description: Add a note.
    input_schema:
      type: object
      required: [text]
      properties: {text: {type: string, maxLength: 500}}
    run: {type: demo}
  - name: notes.clear
    description: Remove all notes. No row of policy.csv allows it.
    input_schema: {type: object}
    run: {type: demo}
# end
`)}
}

// keyPlace is the place of a key for the file of upstreams.
func keyPlace(stated string) (string, error) {
	if !secret.IsPlace(stated) {
		return "", errors.New("--upstream-key is no place of a key; expected env:NAME or file:PATH, so that the key itself is in no file of the configuration")
	}
	path, isFile := strings.CutPrefix(stated, "file:")
	if !isFile {
		return stated, nil
	}
	// On the command line a path starts in the working directory.
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return "file:" + absolute, nil
}
