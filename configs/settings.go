package configs

import (
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/telemetry"
)

// Settings are the keys of the main file, with their defaults. The comments of its keys are those of
// the annotated example.
type Settings struct {
	// Where the gateway listens. The admin listener is for operators only, see docs/admin-api.md.
	Server Server `key:"server" restart:""`
	// How callers are authenticated: none (requests say who they are for, so only loopback may be
	// listened on), keys (each caller sends the key of a principal, see callgate keys new), or jwt (a
	// token of an issuer).
	Auth Auth `key:"auth"`
	// With auth.mode none: the values of a request that does not give its own.
	Defaults DefaultCaller `key:"defaults"`
	// The callers that have keys, with auth.mode keys; absent, there are none.
	PrincipalsFile string `key:"principals" of:"the file of principals" example:"principals.yaml"`
	// The models that POST /v1/chat/completions asks; absent, there are none.
	UpstreamsFile string `key:"upstreams" of:"the file of upstreams" example:"upstreams.yaml"`
	// The prices of models, for budgets of money in the limits file; absent, there are none.
	PricesFile string `key:"prices" of:"the file of prices" example:"prices.yaml"`
	// The tool servers whose tools are offered; absent, there are none.
	ServersFile string `key:"servers" of:"the file of servers" example:"servers.yaml"`
	// The tools: YAML files, or JSON of the same shape.
	Registry `key:"registry"`
	// The policy: which agents may call which tools in which projects. Limits say how often.
	PolicyFile string `key:"policy" of:"the policy file"`
	// Tests of the policy (see callgate policy test), as paths or patterns with * and ?. A
	// configuration in which one fails is not loaded. At most 10,000 cases.
	TestFiles []string `key:"tests" of:"files of tests" list:"filled" example:"[policy_test.yaml]"`
	// A second configuration that judges the same calls without effect, to count how it would differ
	// (see docs/candidate.md). Files not named are those that are served.
	CandidateFiles CandidateFiles `key:"candidate" example:"{policy: policy.next.csv}"`
	WorkspacesFile string         `key:"workspaces" of:"the workspaces file"`
	LimitsFile     string         `key:"limits" of:"the limits file"`
	// The rules by which people approve calls (effect ask:RULE); absent, no row may ask.
	ApprovalsFile string `key:"approvals" of:"the approvals file" example:"approvals.yaml"`
	// Hooks see arguments before calls run, and results before anybody gets them: patterns that find
	// secrets, and programs of yours.
	HooksFile string `key:"hooks" of:"the hooks file" example:"hooks.yaml"`
	// The language of completions. Marks of foreign call syntaxes are refused in every text.
	Language `key:"output"`
	// The audit log and the store. One process locks the folder.
	DataDir string `key:"data_dir" restart:"" of:"a folder"`
	// What is kept of calls, and how.
	Audit `key:"audit" restart:""`
	// Where calls and idempotency keys are kept.
	Store Store `key:"store" restart:""`
	// Threads, for rows of the policy that read what a thread has done (see docs/threads.md).
	Threads Threads `key:"threads" example:""`
	// For tools that take a call and answer it later, by calling back.
	Callbacks Callbacks `key:"callbacks" example:""`
	// What the gateway tells others of itself.
	Telemetry `key:"telemetry" example:""`
	// The log on standard error.
	Log `key:"log"`
	// Where replicas share limits, and with store.kind redis their calls; absent, each process has its
	// own. Exactly one of url, sentinel and cluster. The limits' on_store_loss says what happens while
	// it is away.
	Redis *Redis `key:"redis" restart:"" example:""`
}

// Server says where the gateway listens, and how much it takes on.
type Server struct {
	Listen      string `key:"listen"`
	AdminListen string `key:"admin_listen"`
	// Calls answered at the same time, half of them for one caller; a fifth more for lookups.
	MaxInFlight int `key:"max_in_flight" of:"how many requests are answered at the same time" range:"1..1000000"`
	// The longest that shutting down waits for the calls in flight.
	ShutdownTimeout time.Duration `key:"shutdown_timeout" of:"how long shutting down waits"`
	// Origins of web pages that may send requests, as browsers send them. Pages of this machine may,
	// on connections within it.
	Origins []string `key:"origins" example:"[https://app.example.com]"`
	// Names by which the gateway is reached, without a port; absent, any. Other Hosts are refused.
	// Connections within this machine may also name it; list the name that clients use where a proxy
	// on this machine passes their Host on.
	Hosts []string `key:"hosts" example:"[gateway.example.com]"`
	// This gateway as its clients see it, with the prefix of its paths: with auth.mode jwt, MCP
	// clients read there where to get a token. Absent: http:// and server.listen on loopback, else
	// nothing.
	PublicURL string `key:"public_url" of:"the URL of this gateway as its clients see it" example:"https://gateway.example"`
	// The pages for operators at /console of the admin listener; without them the API remains.
	Console bool `key:"console" of:"whether the admin listener serves the console"`
	// Profiles of the process at /debug/pprof/ of the admin listener. They show its inside and cost
	// processor time: only while you look for something, and never where others than operators reach
	// that listener.
	Profiling bool `key:"profiling" of:"whether the admin listener serves profiles"`
	// Names of tools for MCP clients: wire (letters, digits, _ and -: web_search for web.search),
	// which every client takes; or registry, with dots, for which some clients drop the whole server.
	MCPNames string `key:"mcp_names" of:"by which names clients of MCP know tools" words:"wire registry"`
}

// ReadNode reads the keys of server.
func (s *Server) ReadNode(n document.Node, _ string) {
	n.Object(document.Fields(s,
		document.Field("listen", func(n document.Node) { readAddress(n, &s.Listen) }),
		document.Field("admin_listen", func(n document.Node) { readAddress(n, &s.AdminListen) }),
		document.Field("origins", func(n document.Node) { readOrigins(n, &s.Origins) }),
		document.Field("hosts", func(n document.Node) { readHosts(n, &s.Hosts) }),
		document.Field("public_url", func(n document.Node) {
			readBaseURL(n, "the URL of this gateway as its clients see it", &s.PublicURL)
		}),
	)...)
}

// Registry says where tools are defined.
type Registry struct {
	ToolFiles []string `key:"files" of:"tool files"` // patterns
}

// Language is the language of completions.
type Language struct {
	Output parser.Options `key:""`
	// required refuses a call that does not name its agent: a completion without the member "agent",
	// and a native call (of a model, MCP or OXP) whose request names none.
	AgentRequired bool `key:"agent" of:"whether a call must say which agent it is for" words:"optional required"`
}

// Log sets what is logged.
type Log struct {
	// The share, from 0 to 1, of requests without a refusal or fault that are logged; others always are.
	RequestLogRatio float64 `key:"requests" of:"of requests that are answered without a refusal whose line is written"`
}

// AdminBeyondLoopback reports whether others than this host can reach the admin listener.
func (s Server) AdminBeyondLoopback() bool { return !netx.IsLoopbackListener(s.AdminListen) }

// Audit sets the content and the form of the audit log.
type Audit struct {
	// How much the audit log keeps of a completion: digest (nothing but its digest), arguments,
	// or completion.
	Record string `key:"record" of:"what the audit log keeps" words:"digest arguments completion"`
	// What is on disk before a call is answered: both (its decision and its outcome), or decision; then
	// a crash can lose the outcome, and the call ends as unknown.
	Sync string `key:"sync" of:"what is durable before a call is answered" words:"both decision"`
	// The place (file:PATH or env:NAME) of a key (see callgate audit key) that signs heads of the log
	// into heads.jsonl; absent, audit verify cannot detect that the log was cut off.
	SignKey secret.Ref `key:"sign_key" of:"the key that heads of the log are signed with" example:"file:audit.key"`
	// The size at which a file is rotated, 1 MiB or more; absent, never.
	RotateBytes int64 `key:"rotate_bytes" of:"from which size on a file of the log is moved aside" range:"1048576..1099511627776" example:"268435456"`
	// Write zeros ahead of the records in audit.jsonl, for faster syncs on ext4 and XFS. Then tail -f
	// and log shippers cannot read the file while it is written.
	Preallocate bool `key:"preallocate" of:"whether zeros are written ahead of the records"`
	// An OpenTelemetry collector that gets each record after it is on disk; no call waits for it. Keys
	// as in telemetry.traces.
	OTLP Collector `key:"otlp" example:"{endpoint: \"http://localhost:4318\", timeout: 10s}"`
}

// SyncDecision makes decisions durable before the act, and outcomes after the answer.
const SyncDecision = "decision"

// Auth sets how callers authenticate.
type Auth struct {
	Mode string `key:"mode" restart:"" of:"how callers prove who they are" words:"none keys jwt"`
	// Which tokens are accepted. issuer and audience are required; the other values are
	// the defaults.
	JWT JWT `key:"jwt" example:""`
	// With mode none too, listen on addresses beyond loopback.
	AllowAnyListener bool `key:"allow_any_listener" of:"whether mode none may listen beyond loopback"`
}

// The values of Server.MCPNames.
const (
	NamesWire     = "wire"
	NamesRegistry = "registry"
)

// The modes of Auth.
const (
	AuthNone = "none"
	AuthKeys = "keys"
	AuthJWT  = "jwt"
)

// DefaultCaller fills in the members that a request omits, with auth.mode none.
type DefaultCaller struct {
	Agent     string `key:"agent" of:"an agent"`
	Workspace string `key:"workspace" of:"a workspace"`
	Project   string `key:"project" of:"a project"`
}

// chooseDefaults puts the only project, and its only agent, in the place of defaults that the main file
// does not state and that the configuration does not have: they are names of the built-in example.
func (c *Config) chooseDefaults(root document.Node) {
	stated := func(key string) bool {
		_, ok := root.Resolve("/defaults/" + key)
		return ok
	}
	d := &c.Defaults
	if _, known := c.Workspaces[d.Workspace].Projects[d.Project]; !known && !stated("workspace") && !stated("project") {
		if only := c.Workspaces.Places(""); len(only) == 1 {
			d.Workspace, d.Project, _ = strings.Cut(only[0], "/")
		}
	}
	if agents := c.Workspaces[d.Workspace].Projects[d.Project].Agents; !c.Agents[d.Agent] && !stated("agent") && len(agents) == 1 {
		d.Agent = agents[0]
	}
}

func defaultSettings() Settings {
	return Settings{
		Server: Server{Listen: "127.0.0.1:8080", AdminListen: "127.0.0.1:9090", MaxInFlight: 256, ShutdownTimeout: 30 * time.Second,
			MCPNames: NamesWire, Console: true},
		Auth:           Auth{Mode: AuthNone, JWT: defaultTokens()},
		Defaults:       DefaultCaller{Agent: "Analyst", Workspace: "acme", Project: "alpha"},
		Registry:       Registry{ToolFiles: []string{"tools/*.yaml"}},
		PolicyFile:     "policy.csv",
		WorkspacesFile: "workspaces.yaml",
		LimitsFile:     "limits.yaml",
		Language: Language{Output: parser.Options{MaxBytes: parser.DefaultMaxBytes, MaxDepth: parser.DefaultMaxDepth,
			JSONInText: parser.Reject, NativeText: parser.RefuseCalls}},
		DataDir:   "callgate-data",
		Audit:     Audit{Record: "digest", Sync: "both", OTLP: defaultCollector()},
		Telemetry: Telemetry{Traces: defaultTraces(), CallLabels: telemetry.CallLabels{MaxSeries: 1000}},
		Log:       Log{RequestLogRatio: 1},
		Store:     defaultStore(),
		Threads:   defaultThreads(),
	}
}

// readSettings reads the main file.
func readSettings(root document.Node) Settings {
	s := defaultSettings()
	root.Object(document.Fields(&s, document.Field("data_dir", func(n document.Node) { readDataDir(n, &s.DataDir) }))...)
	if tests, stated := root.Resolve("/tests"); stated {
		tests.NotEmpty("file of tests")
	}
	if files, stated := root.Resolve("/registry/files"); stated && files.IsList() && len(files.Content) == 0 && s.ServersFile == "" &&
		s.UpstreamsFile == "" {
		files.Fail("found an empty list; expected at least one tool file, or servers or upstreams, which bring tools")
	}
	return s
}

// readDataDir reads the folder, which is made where there is none: the place of a secret would be made as well.
func readDataDir(n document.Node, into *string) {
	if n.Text("a folder", into) && (strings.HasPrefix(n.Value, "env:") || strings.HasPrefix(n.Value, "file:")) {
		n.Fail("found %s; expected the path of a folder, since env: and file: are read only for secrets", n.Describe())
	}
}

// readAddress reads host:port.
func readAddress(n document.Node, into *string) {
	n.Matching("an address as host:port, such as 127.0.0.1:8080", `^([^:\[\]]*|\[[^\[\]]*\]):(0|[1-9][0-9]{0,4})$`)
	_, port, err := net.SplitHostPort(n.Value)
	if p, e := strconv.ParseUint(port, 10, 16); !n.IsString() || err != nil || e != nil || strconv.FormatUint(p, 10) != port {
		n.Fail("found %s; expected an address as host:port, such as 127.0.0.1:8080", n.Describe())
		return
	}
	*into = n.Value
}
