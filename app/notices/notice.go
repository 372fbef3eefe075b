package notices

import (
	"encoding/json"
	"time"

	"github.com/callgate/callgate/store/approval"
)

// notice is the body of a message. It holds no arguments of the call: they may be secret, and
// a person must see what the admin API shows.
type notice struct {
	Type      string    `json:"type"`      // approval.requested, approval.decided or approval.ended
	Timestamp time.Time `json:"timestamp"` // when the approval came to its state
	Data      facts     `json:"data"`
}

type facts struct {
	ID        string         `json:"id"`
	State     approval.State `json:"state"`
	Rules     []string       `json:"rules"`
	Tool      string         `json:"tool"`
	Agent     string         `json:"agent"`
	Workspace string         `json:"workspace"`
	Project   string         `json:"project"`
	Principal string         `json:"principal"`
	Until     time.Time      `json:"until"` // when it can no longer be used
	Digest    string         `json:"digest"`
	URL       string         `json:"url,omitempty"` // where people decide it
}

// encode returns the id and the body of the notice that an approval has come to a state.
func encode(a *approval.Approval, state approval.State, url string) (id string, body []byte, err error) {
	kind, suffix := "approval.ended", string(state)
	switch state {
	case approval.Waiting:
		kind, suffix = "approval.requested", "requested"
	case approval.Approved, approval.Denied:
		kind = "approval.decided"
	}
	body, err = json.Marshal(notice{kind, a.Since(state), facts{
		ID: a.ID, State: state, Rules: a.Rules, Tool: a.Tool, Agent: a.Agent, Workspace: a.Workspace, Project: a.Project,
		Principal: a.Principal,
		Until:     a.Closes(), Digest: a.Digest, URL: url,
	}})
	return a.ID + "_" + suffix, body, err
}
