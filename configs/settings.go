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

// Settings are the keys of the main file, with their defaults.
type Settings struct {
	Server         Server
	Auth           Auth
	Defaults       DefaultCaller
	ToolFiles      []string // patterns of tool files
	SecondJudge    string   // whose schemas' arguments both evaluators judge on each call: SecondJudgePlain or SecondJudgeAll
	PolicyFile     string
	TestFiles      []string // patterns of files of tests of the policy; none where there are none
	CandidateFiles CandidateFiles
	WorkspacesFile string // the workspaces file
	LimitsFile     string
	ApprovalsFile  string // the approvals file; empty when there is none
	HooksFile      string // the hooks file; empty when there is none
	PrincipalsFile string // the principals file; empty when there is none
	UpstreamsFile  string // the upstreams file; empty when there is none
	PricesFile     string // the file of prices of models; empty when there is none
	// ServersFile is the servers file; empty when there is none.
	ServersFile string
	Output      parser.Options
	// AgentRequired says that every call names the agent that it is for.
	AgentRequired bool
	// Callbacks is for tools that answer later.
	Callbacks Callbacks
	// DataDir holds the audit log and the store. It is relative to the main file, or to the
	// working directory for the embedded default, which is in no folder.
	DataDir string
	Audit
	Traces Traces
	// CallLabels are names that the metrics of calls have as labels.
	CallLabels telemetry.CallLabels
	// RequestLogRatio is the share of requests, from 0 to 1, whose line the log has though they
	// were neither refused nor failed.
	RequestLogRatio float64
	// Redis is where limits are that replicas share, and with Store of the kind redis
	// their calls; nil where both are this process's own.
	Redis *Redis
	Store Store
}

// Server says where the gateway listens, and how much it takes on.
type Server struct {
	Listen, AdminListen string
	MaxInFlight         int           // requests that are answered at the same time
	ShutdownTimeout     time.Duration // the longest that shutting down waits for them
	Origins             []string      // of web pages that may ask, as browsers write them
	Hosts               []string      // by which the gateway is reached
	PublicURL           string        // of the gateway, as its clients see it; empty is not known
	Profiling           bool          // the admin listener serves profiles of the process
	Console             bool          // the admin listener serves the console
	MCPNames            string        // by which names tools are listed and called over MCP: wire or registry
}

// AdminBeyondLoopback reports whether others than this host can reach the admin listener.
func (s Server) AdminBeyondLoopback() bool { return !netx.IsLoopbackListener(s.AdminListen) }

// Audit sets the content and the form of the audit log.
type Audit struct {
	Record string // what of a completion it keeps: digest, arguments or completion
	Sync   string // what is durable before a call is answered: all, or SyncDecision
	// SignKey is the place of the key that signs checkpoints of the log; without it none
	// are signed.
	SignKey     secret.Ref
	RotateBytes int64 // from which size on a file is moved aside; 0 is never
	// OTLP is the collector that gets a copy of each record.
	OTLP Collector
}

// SyncDecision makes decisions durable before the act, and outcomes after the answer.
const SyncDecision = "decision"

// Auth sets how callers authenticate.
type Auth struct {
	Mode string
	// AllowAnyListener lets mode none listen beyond loopback.
	AllowAnyListener bool
	// JWT is for mode jwt.
	JWT JWT
}

// The values of Server.MCPNames.
const (
	NamesWire     = "wire"
	NamesRegistry = "registry"
)

// The values of Settings.SecondJudge.
const (
	SecondJudgePlain = "plain" // those of schemas that are not plain
	SecondJudgeAll   = "all"
)

// The modes of Auth.
const (
	AuthNone = "none"
	AuthKeys = "keys"
	AuthJWT  = "jwt"
)

// DefaultCaller fills in the members that a request omits, with auth.mode none.
type DefaultCaller struct{ Agent, Workspace, Project string }

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
		Server:          Server{Listen: "127.0.0.1:8080", AdminListen: "127.0.0.1:9090", MaxInFlight: 256, ShutdownTimeout: 30 * time.Second, MCPNames: NamesWire, Console: true},
		Auth:            Auth{Mode: AuthNone, JWT: defaultTokens()},
		Defaults:        DefaultCaller{Agent: "Analyst", Workspace: "acme", Project: "alpha"},
		ToolFiles:       []string{"tools/*.yaml"},
		SecondJudge:     SecondJudgePlain,
		PolicyFile:      "policy.csv",
		WorkspacesFile:  "workspaces.yaml",
		LimitsFile:      "limits.yaml",
		Output:          parser.Options{MaxBytes: parser.DefaultMaxBytes, MaxDepth: parser.DefaultMaxDepth, JSONInText: parser.Reject, NativeText: parser.RefuseCalls},
		DataDir:         "callgate-data",
		Audit:           Audit{Record: "digest", Sync: "all", OTLP: defaultCollector()},
		Traces:          defaultTraces(),
		CallLabels:      telemetry.CallLabels{MaxSeries: defaultMaxSeries},
		RequestLogRatio: 1,
		Store:           defaultStore(),
	}
}

// The bounds of output.
const (
	lowestMaxBytes  = 64
	highestMaxBytes = 64 << 20
	highestMaxDepth = 1000
)

// The bounds of audit.rotate_bytes.
const (
	lowestRotate  = 1 << 20
	highestRotate = 1 << 40
)

// readSettings reads the main file.
func readSettings(root document.Node) Settings {
	s := defaultSettings()
	root.Object(
		document.Group("server",
			document.Field("listen", func(n document.Node) { readAddress(n, &s.Server.Listen) }),
			document.Field("admin_listen", func(n document.Node) { readAddress(n, &s.Server.AdminListen) }),
			document.Int("max_in_flight", "how many requests are answered at the same time", 1, 1_000_000, &s.Server.MaxInFlight),
			document.Duration("shutdown_timeout", "how long shutting down waits", &s.Server.ShutdownTimeout),
			document.Field("origins", func(n document.Node) { readOrigins(n, &s.Server.Origins) }),
			document.Field("hosts", func(n document.Node) { readHosts(n, &s.Server.Hosts) }),
			document.Field("public_url", func(n document.Node) {
				readBaseURL(n, "the URL of this gateway as its clients see it", &s.Server.PublicURL)
			}),
			document.Bool("console", "whether the admin listener serves the console", &s.Server.Console),
			document.Bool("profiling", "whether the admin listener serves profiles", &s.Server.Profiling),
			document.Choice("mcp_names", "by which names clients of MCP know tools", &s.Server.MCPNames, NamesWire, NamesRegistry),
		),
		document.Group("auth",
			document.Choice("mode", "how callers prove who they are", &s.Auth.Mode, AuthNone, AuthKeys, AuthJWT),
			document.Field("jwt", func(n document.Node) { readJWT(n, &s.Auth.JWT) }),
			document.Bool("allow_any_listener", "whether mode none may listen beyond loopback", &s.Auth.AllowAnyListener),
		),
		document.Group("defaults",
			document.Text("agent", "an agent", &s.Defaults.Agent),
			document.Text("workspace", "a workspace", &s.Defaults.Workspace),
			document.Text("project", "a project", &s.Defaults.Project),
		),
		document.Text("principals", "the file of principals", &s.PrincipalsFile),
		document.Text("upstreams", "the file of upstreams", &s.UpstreamsFile),
		document.Text("prices", "the file of prices", &s.PricesFile),
		document.Text("servers", "the file of servers", &s.ServersFile),
		document.Group("registry",
			document.Field("files", func(n document.Node) {
				s.ToolFiles = nil
				n.Texts("tool files", &s.ToolFiles)
			}),
			document.Choice("second_judge", "which schemas a second evaluator judges by on each call", &s.SecondJudge, SecondJudgePlain, SecondJudgeAll),
		),
		document.Text("policy", "the policy file", &s.PolicyFile),
		document.Field("tests", func(n document.Node) {
			n.Texts("files of tests", &s.TestFiles)
			n.NotEmpty("file of tests")
		}),
		candidateKeys(&s.CandidateFiles),
		document.Text("workspaces", "the workspaces file", &s.WorkspacesFile),
		document.Text("limits", "the limits file", &s.LimitsFile),
		document.Text("approvals", "the approvals file", &s.ApprovalsFile),
		document.Text("hooks", "the hooks file", &s.HooksFile),
		document.Field("output", func(n document.Node) { readOutput(n, &s.Output, &s.AgentRequired) }),
		document.Text("data_dir", "a folder", &s.DataDir),
		document.Group("audit",
			document.Choice("record", "what the audit log keeps", &s.Record, "digest", "arguments", "completion"),
			document.Choice("sync", "what is durable before a call is answered", &s.Sync, "all", SyncDecision),
			document.Field("sign_key", func(n document.Node) { secret.Decode(n, "the key that heads of the log are signed with", &s.SignKey) }),
			document.Int("rotate_bytes", "from which size on a file of the log is moved aside", lowestRotate, highestRotate, &s.RotateBytes),
			document.Field("otlp", func(n document.Node) { readShipping(n, &s.OTLP) }),
		),
		document.Field("store", func(n document.Node) { readStore(n, &s.Store) }),
		document.Field("callbacks", func(n document.Node) { readCallbacks(n, &s.Callbacks) }),
		document.Group("telemetry",
			document.Field("traces", func(n document.Node) { readTraces(n, &s.Traces) }),
			document.Group("metrics",
				document.Field("labels", func(n document.Node) { readCallLabels(n, &s.CallLabels) }),
				document.Int("max_series", "how many series may have the name of an agent or a tool", 1, highestMaxSeries, &s.CallLabels.MaxSeries),
			),
		),
		document.Group("log", document.Ratio("requests", "of requests that are answered without a refusal whose line is written", &s.RequestLogRatio)),
		document.Field("redis", func(n document.Node) { s.Redis = readRedis(n) }),
	)
	if files, stated := root.Resolve("/registry/files"); stated && files.IsList() && len(files.Content) == 0 && s.ServersFile == "" && s.UpstreamsFile == "" {
		files.Fail("found an empty list; expected at least one tool file, or servers or upstreams, which bring tools")
	}
	return s
}

func readOutput(n document.Node, o *parser.Options, agentRequired *bool) {
	agent := ""
	n.Object(
		document.Int("max_bytes", "the longest completion in bytes", lowestMaxBytes, highestMaxBytes, &o.MaxBytes),
		document.Int("max_depth", "the deepest nesting", 3, highestMaxDepth, &o.MaxDepth),
		document.Choice("json_in_text", "what JSON within text does", &o.JSONInText, parser.Reject, parser.AllowForeign),
		document.Choice("native_text", "what JSON does within the text of answers whose calls come natively", &o.NativeText, parser.RefuseCalls, parser.RefuseObjects, parser.AllowAny),
		document.Choice("agent", "whether a call must say which agent it is for", &agent, "optional", "required"),
	)
	*agentRequired = agent == "required"
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
