package admin

import (
	"context"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs/toolservers"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/policy/lab"
	"github.com/callgate/callgate/store"
)

// Sources have the data that the endpoints of this package read. All but SearchTime must be set.
type Sources struct {
	Kernel *gateway.Kernel
	Log    *audit.Log
	Recent *Recent
	Runs   *runs.Log
	// Health is the state of the process, and Configuration that of its files.
	Health        func() Health
	Configuration func() Configuration
	// OpenBreakers counts the tools that get no requests for now, because they did not answer.
	OpenBreakers func() int
	// Candidate says how the judgement of the candidate differs from the one that is served.
	Candidate func() lab.CandidateReport
	// Differences tells what differs between the accepted definitions of a tool and its server's.
	Differences func(tool string) []toolservers.Difference
	Version     string // of the program
	Replica     string
	Started     time.Time
	// StopsInForce is how many stops of operators have not ended; nil: none.
	StopsInForce func() int
	// StopsKept are the stops of operators and those that have ended lately; nil: none.
	StopsKept func() []store.Stop
	// Changes are those of the configuration and the tools; nil: none.
	Changes *Changes
	// ApprovalsWaiting is how many calls waited for people when they were last counted.
	ApprovalsWaiting func() int
	// ApprovalChanges returns a number that grows when approvals or grants have changed, at whatever
	// gateway. It asks the store.
	ApprovalChanges func(context.Context) int
	// SearchTime bounds one search of the log, which then answers with the part that it found.
	// 0 is 5 s.
	SearchTime time.Duration
}

// Health is the state of a gateway, and the body of /readyz on the admin listener.
type Health struct {
	Ready    bool                 `json:"ready"`
	Digest   string               `json:"digest"` // of the configuration that is served
	Since    time.Time            `json:"since"`
	Failing  *time.Time           `json:"failing,omitempty"` // since when the files do not load
	Faults   []string             `json:"faults,omitempty"`  // why, with file and line
	Restart  []string             `json:"restart,omitempty"` // keys that have changed and wait for it
	Limits   string               `json:"limits,omitempty"`  // why limits that replicas share are not shared
	Calls    string               `json:"calls,omitempty"`   // why calls cannot be stored
	Threads  string               `json:"threads,omitempty"` // why the past of threads is not known
	Callers  string               `json:"callers,omitempty"` // why no credential can be verified
	Stops    string               `json:"stops,omitempty"`   // why stops of other gateways are not known here
	Servers  []toolservers.Status `json:"servers,omitempty"` // the tool servers
	InFlight int                  `json:"in_flight"`
}

// Status is the answer of GET /v1/status.
type Status struct {
	Health
	Version       string    `json:"version"`
	Replica       string    `json:"replica"`
	Started       time.Time `json:"started"`
	UptimeSeconds int64     `json:"uptime_seconds"`
	// Log is the end of the audit log.
	Log LogEnd `json:"log"`
	// Recent counts the judgements of this gateway in the last five minutes.
	Recent           Counts `json:"recent"`
	OpenBreakers     int    `json:"open_breakers"`
	StopsInForce     int    `json:"stops_in_force"` // what operators have stopped
	ApprovalsWaiting *int   `json:"approvals_waiting,omitempty"`
}

// LogEnd is the last durable record of the audit log.
type LogEnd struct {
	Seq  uint64 `json:"seq"` // 0: there is none
	Hash string `json:"hash"`
}

// Configuration is the configuration in force. It names the places of secrets at most.
type Configuration struct {
	Digest string    `json:"digest"`
	Since  time.Time `json:"since"`
	Files  []string  `json:"files"` // the main one first; none for the built-in example
	// Warnings are of the files that are served, Faults say why the files of now are not.
	Warnings []string `json:"warnings"`
	Faults   []string `json:"faults"`
	Restart  []string `json:"restart"` // keys that have changed and wait for a restart
	Settings Settings `json:"settings"`
	Agents   []string `json:"agents"` // that a project or a principal names
	// Projects are those of all workspaces, as workspace/project, and ToolNames the names of the tools.
	Projects  []string `json:"projects"`
	ToolNames []string `json:"tool_names"`
	// DefaultAgent and DefaultProject (workspace/project) are those of a request that names none; absent
	// where the configuration does not have them.
	DefaultAgent   string `json:"default_agent,omitempty"`
	DefaultProject string `json:"default_project,omitempty"`
	Tools          int    `json:"tools"`
}

// Settings are the keys of the main file that say how the gateway runs.
type Settings struct {
	Listen       string `json:"listen"`
	AdminListen  string `json:"admin_listen"`
	AuthMode     string `json:"auth_mode"`
	AuditRecord  string `json:"audit_record"`
	AuditSigned  bool   `json:"audit_signed"`
	Store        string `json:"store"`
	SharedLimits bool   `json:"shared_limits"`
	JSONInText   string `json:"json_in_text"`
	NativeText   string `json:"native_text"`
	MaxBytes     int    `json:"max_bytes"`
	MaxDepth     int    `json:"max_depth"`
}

func (s *Sources) status(*Request) (any, error) {
	seq, hash := s.Log.Last()
	status := Status{
		Health: s.Health(), Version: s.Version, Replica: s.Replica, Started: s.Started,
		UptimeSeconds: int64(time.Since(s.Started).Seconds()),
		Log:           LogEnd{seq, hash}, Recent: s.Recent.counts(), OpenBreakers: s.OpenBreakers(),
	}
	if s.StopsInForce != nil {
		status.StopsInForce = s.StopsInForce()
	}
	if s.ApprovalsWaiting != nil {
		n := s.ApprovalsWaiting()
		status.ApprovalsWaiting = &n
	}
	return status, nil
}

// maxBody is the longest body that may hold a completion: what the native face takes.
func (s *Sources) maxBody() int64 { return 6*int64(s.Kernel.ParserOptions().MaxBytes) + 64<<10 }
