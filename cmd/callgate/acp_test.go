package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/acptest"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

// asACPAgent is the first argument of a process that is an agent of ACP. It is no variable
// of the environment, since callgate acp passes on none.
const asACPAgent = "acp-agent"

// acpAgent is the command of an agent that follows a script. One without a script takes its
// steps from each prompt.
func acpAgent(t *testing.T, script acptest.Script) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "script.json")
	text, err := json.Marshal(script)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{self, asACPAgent, file}
}

// startACP runs callgate acp with an editor in front of it. Its side and that of the editor
// are held against the protocol.
func startACP(t *testing.T, args ...string) *acptest.Process {
	t.Helper()
	return acptest.Start(t, process(context.Background(), nil, append([]string{"acp"}, args...)...), acptest.Client, acptest.Agent)
}

// acpSubject is what one process of callgate acp stands for.
type acpSubject struct{ agent, workspace, project string }

func subjectOf(v corpora.Vector) acpSubject {
	return acpSubject{v.Agent, v.Workspace, v.Project}
}

func (s acpSubject) flags() []string {
	return []string{"--agent", s.agent, "--workspace", s.workspace, "--project", s.project}
}

// editors are the processes of the subjects of vectors, each started when it is first
// needed, with one session in the project's folder.
type editors struct {
	start func(s acpSubject) *acptest.Process
	all   map[acpSubject]*opened
}

type opened struct {
	*acptest.Process
	session string
}

// of returns the process for a vector. It is false where the subject is unknown: no process
// of callgate acp runs for such a one, and it says so with the code that other faces answer
// each call with.
func (e *editors) of(t *testing.T, v corpora.Vector) (*opened, bool) {
	t.Helper()
	s := subjectOf(v)
	if o, started := e.all[s]; started {
		return o, o != nil
	}
	p := e.start(s)
	if v.Expect.Code == "agent_unknown" {
		e.all[s] = nil
		if err := p.Stop(); err == nil || !strings.Contains(p.Log(), v.Expect.Code) {
			t.Errorf("%s: it ends with %v and says %s, expected the code %s", v.ID, err, p.Log(), v.Expect.Code)
		}
		return nil, false
	}
	p.Initialize(nil)
	e.all[s] = &opened{p, p.Session("/srv/acme/" + s.project)}
	return e.all[s], true
}
