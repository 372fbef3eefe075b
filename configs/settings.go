package configs

import (
	"net"
	"strconv"
	"time"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/secret"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/parser"
)

// Settings are the keys of the main file, with their defaults.
type Settings struct {
	Server         Server
	Auth           Auth
	Defaults       DefaultCaller
	ToolFiles      []string // patterns of tool files
	SecondJudge    string   // whose schemas' arguments both evaluators judge on each call: SecondJudgePlain or SecondJudgeAll
	PolicyFile     string
	WorkspacesFile string // the workspaces file
	LimitsFile     string
	PrincipalsFile string // the principals file; empty when there is none
	UpstreamsFile  string // the upstreams file; empty when there is none
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

func defaultSettings() Settings {
	return Settings{
		Server:          Server{Listen: "127.0.0.1:8080", AdminListen: "127.0.0.1:9090", MaxInFlight: 256, ShutdownTimeout: 30 * time.Second, MCPNames: NamesWire},
		Auth:            Auth{Mode: AuthNone, JWT: defaultTokens()},
		Defaults:        DefaultCaller{Agent: "Analyst", Workspace: "acme", Project: "alpha"},
		ToolFiles:       []string{"tools/*.yaml"},
		SecondJudge:     SecondJudgePlain,
		PolicyFile:      "policy.csv",
		WorkspacesFile:  "workspaces.yaml",
		LimitsFile:      "limits.yaml",
		Output:          parser.Options{MaxBytes: parser.DefaultMaxBytes, MaxDepth: parser.DefaultMaxDepth, JSONInText: parser.Reject},
		DataDir:         "callgate-data",
		Audit:           Audit{Record: "digest", Sync: "all"},
		Traces:          defaultTraces(),
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
		document.Field("server", func(n document.Node) {
			n.Object(
				document.Field("listen", func(n document.Node) { readAddress(n, &s.Server.Listen) }),
				document.Field("admin_listen", func(n document.Node) { readAddress(n, &s.Server.AdminListen) }),
				document.Field("max_in_flight", func(n document.Node) {
					most := int64(s.Server.MaxInFlight)
					n.Int("how many requests are answered at the same time", 1, 1_000_000, &most)
					s.Server.MaxInFlight = int(most)
				}),
				document.Field("shutdown_timeout", func(n document.Node) { n.Duration("how long shutting down waits", &s.Server.ShutdownTimeout) }),
				document.Renamed("drain", "shutdown_timeout"),
				document.Field("origins", func(n document.Node) { readOrigins(n, &s.Server.Origins) }),
				document.Field("hosts", func(n document.Node) { readHosts(n, &s.Server.Hosts) }),
				document.Field("public_url", func(n document.Node) {
					readBaseURL(n, "the URL of this gateway as its clients see it", &s.Server.PublicURL)
				}),
				document.Field("profiling", func(n document.Node) {
					n.Bool("whether the admin listener serves profiles", &s.Server.Profiling)
				}),
				document.Field("mcp_names", func(n document.Node) {
					n.Choice("by which names clients of MCP know tools", []string{NamesWire, NamesRegistry}, &s.Server.MCPNames)
				}),
			)
		}),
		document.Field("auth", func(n document.Node) {
			n.Object(
				document.Field("mode", func(n document.Node) {
					n.Choice("how callers prove who they are", []string{AuthNone, AuthKeys, AuthJWT}, &s.Auth.Mode)
				}),
				document.Field("jwt", func(n document.Node) { readJWT(n, &s.Auth.JWT) }),
				document.Field("allow_any_listener", func(n document.Node) {
					n.Bool("whether mode none may listen beyond loopback", &s.Auth.AllowAnyListener)
				}),
			)
		}),
		document.Field("defaults", func(n document.Node) {
			n.Object(
				document.Field("agent", func(n document.Node) { n.Text("an agent", &s.Defaults.Agent) }),
				document.Field("workspace", func(n document.Node) { n.Text("a workspace", &s.Defaults.Workspace) }),
				document.Field("project", func(n document.Node) { n.Text("a project", &s.Defaults.Project) }),
			)
		}),
		document.Field("principals", func(n document.Node) { n.Text("the file of principals", &s.PrincipalsFile) }),
		document.Field("upstreams", func(n document.Node) { n.Text("the file of upstreams", &s.UpstreamsFile) }),
		document.Field("servers", func(n document.Node) { n.Text("the file of servers", &s.ServersFile) }),
		document.Field("registry", func(n document.Node) {
			n.Object(
				document.Field("files", func(n document.Node) {
					s.ToolFiles = nil
					n.Texts("tool files", &s.ToolFiles)
					if n.IsList() && len(n.Content) == 0 {
						n.Fail("found an empty list; expected at least one tool file")
					}
				}),
				document.Field("second_judge", func(n document.Node) {
					n.Choice("which schemas a second evaluator judges by on each call", []string{SecondJudgePlain, SecondJudgeAll}, &s.SecondJudge)
				}),
			)
		}),
		document.Field("policy", func(n document.Node) { n.Text("the policy file", &s.PolicyFile) }),
		document.Field("workspaces", func(n document.Node) { n.Text("the workspaces file", &s.WorkspacesFile) }),
		document.Field("limits", func(n document.Node) { n.Text("the limits file", &s.LimitsFile) }),
		document.Field("output", func(n document.Node) { readOutput(n, &s.Output, &s.AgentRequired) }),
		document.Field("data_dir", func(n document.Node) { n.Text("a folder", &s.DataDir) }),
		document.Field("audit", func(n document.Node) {
			n.Object(
				document.Field("record", func(n document.Node) {
					n.Choice("what the audit log keeps", []string{"digest", "arguments", "completion"}, &s.Record)
				}),
				document.Field("sync", func(n document.Node) {
					n.Choice("what is durable before a call is answered", []string{"all", SyncDecision}, &s.Sync)
				}),
				document.Field("sign_key", func(n document.Node) { secret.Decode(n, "the key that heads of the log are signed with", &s.SignKey) }),
				document.Field("rotate_bytes", func(n document.Node) {
					n.Int("from which size on a file of the log is moved aside", lowestRotate, highestRotate, &s.RotateBytes)
				}),
			)
		}),
		document.Field("store", func(n document.Node) { readStore(n, &s.Store) }),
		document.Field("callbacks", func(n document.Node) { readCallbacks(n, &s.Callbacks) }),
		document.Field("telemetry", func(n document.Node) {
			n.Object(document.Field("traces", func(n document.Node) { readTraces(n, &s.Traces) }))
		}),
		document.Field("log", func(n document.Node) {
			n.Object(document.Field("requests", func(n document.Node) {
				n.Ratio("of requests that are answered without a refusal whose line is written", &s.RequestLogRatio)
			}))
		}),
		document.Field("redis", func(n document.Node) { s.Redis = readRedis(n) }),
	)
	return s
}

func readOutput(n document.Node, o *parser.Options, agentRequired *bool) {
	bytes, depth, inText, agent := int64(o.MaxBytes), int64(o.MaxDepth), string(o.JSONInText), ""
	n.Object(
		document.Field("max_bytes", func(n document.Node) {
			n.Int("the longest completion in bytes", lowestMaxBytes, highestMaxBytes, &bytes)
		}),
		document.Field("max_depth", func(n document.Node) { n.Int("the deepest nesting", 3, highestMaxDepth, &depth) }),
		document.Field("json_in_text", func(n document.Node) {
			n.Choice("what JSON within text does", []string{string(parser.Reject), string(parser.AllowForeign)}, &inText)
		}),
		document.Field("agent", func(n document.Node) {
			n.Choice("whether a call must say which agent it is for", []string{"optional", "required"}, &agent)
		}),
	)
	*agentRequired = agent == "required"
	*o = parser.Options{MaxBytes: int(bytes), MaxDepth: int(depth), JSONInText: parser.JSONInText(inText)}
}

// readAddress reads host:port.
func readAddress(n document.Node, into *string) {
	_, port, err := net.SplitHostPort(n.Value)
	if p, e := strconv.ParseUint(port, 10, 16); !n.IsString() || err != nil || e != nil || strconv.FormatUint(p, 10) != port {
		n.Fail("found %s; expected an address as host:port, such as 127.0.0.1:8080", n.Describe())
		return
	}
	*into = n.Value
}
