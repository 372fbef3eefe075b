package callgate_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/callgate/callgate/"

// table says which of our own packages each package may import, and which
// third-party modules are confined to it. A new arrow is a decision: it is made
// here first.
var table = map[string]struct{ own, foreign []string }{
	"refusal":                   {},
	"tool":                      {own: []string{"refusal"}},
	"elicitation":               {own: []string{"internal/ascii", "internal/decimal", "internal/weburl", "parser", "refusal", "registry", "registry/schema", "tool", "wrapper"}},
	"engine":                    {own: []string{"engine/acp", "engine/callback", "engine/demo", "engine/httptool", "internal/refuse", "outbound", "engine/oxp", "internal/deadline", "internal/safe", "refusal", "tool"}},
	"engine/acp":                {own: []string{"acp/delegate", "acp/wire", "internal/refuse", "internal/strictjson", "refusal", "tool"}},
	"engine/callback":           {own: []string{"internal/refuse", "outbound", "internal/safe", "parser", "refusal", "tool"}},
	"engine/demo":               {own: []string{"internal/refuse", "refusal", "tool"}},
	"engine/httptool":           {own: []string{"internal/refuse", "outbound", "internal/safe", "internal/strictjson", "refusal", "tool"}},
	"internal/refuse":           {own: []string{"internal/text", "refusal", "tool"}},
	"engine/mcp":                {own: []string{"internal/refuse", "outbound", "internal/ascii", "internal/program", "internal/safe", "internal/sse", "internal/strictjson", "mcp/wire", "refusal", "tool"}, foreign: []string{"github.com/cenkalti/backoff/v5"}},
	"outbound":                  {own: []string{"internal/refuse", "internal/ascii", "internal/deadline", "internal/netx", "internal/renew", "internal/safe", "refusal", "tool"}, foreign: []string{"code.dny.dev/ssrf", "github.com/cenkalti/backoff/v5", "github.com/sony/gobreaker/v2", "golang.org/x/oauth2", "golang.org/x/oauth2/clientcredentials"}},
	"engine/oxp":                {own: []string{"internal/refuse", "outbound", "internal/strictjson", "internal/weburl", "parser", "refusal", "tool"}},
	"parser":                    {own: []string{"refusal"}},
	"registry":                  {own: []string{"internal/ascii", "internal/decimal", "internal/netx", "registry/internal/lexical", "internal/similar", "registry/schema", "tool"}},
	"registry/schema":           {own: []string{"internal/ascii", "internal/decimal", "internal/safe", "internal/strictjson", "refusal", "registry/format", "registry/internal/lexical", "registry/schema/plain", "internal/similar"}, foreign: []string{"github.com/kaptinlin/jsonschema", "github.com/santhosh-tekuri/jsonschema/v6"}},
	"replay":                    {own: []string{"audit", "configs", "gateway/dryrun", "parser", "policy", "refusal"}},
	"candidate":                 {own: []string{"internal/safe", "gateway", "gateway/dryrun", "refusal", "replay"}},
	"registry/schema/plain":     {own: []string{"internal/decimal", "registry/format"}},
	"registry/format":           {own: []string{"internal/ascii"}},
	"registry/internal/lexical": {},
	"internal/similar":          {},
	"internal/clienttools":      {},
	"policy":                    {own: []string{"internal/invalid", "internal/safe", "internal/similar", "policy/boundary", "policy/condition", "policy/internal/lexical", "refusal"}, foreign: []string{"github.com/casbin/casbin/v2"}},
	"policy/boundary":           {own: []string{"internal/ascii", "policy/internal/lexical"}, foreign: []string{"golang.org/x/text/unicode/norm"}},
	"policy/compare":            {own: []string{"internal/decimal", "policy", "policy/condition"}},
	"policy/narrow":             {own: []string{"policy"}},
	"policy/condition":          {own: []string{"internal/decimal", "internal/safe", "refusal"}, foreign: []string{"cel.dev/cel-go"}},
	"policy/internal/lexical":   {},
	"ratelimit":                 {own: []string{"internal/invalid", "ratelimit/internal/charge"}, foreign: []string{"golang.org/x/time"}},
	"ratelimit/redislimit":      {own: []string{"internal/safe", "internal/redisconn", "ratelimit", "ratelimit/internal/charge"}, foreign: []string{"github.com/cenkalti/backoff/v5", "github.com/redis/go-redis/v9"}},
	"ratelimit/internal/charge": {own: []string{"refusal"}},
	"budget":                    {own: []string{"internal/decimal", "refusal"}},
	"budget/redisbudget":        {own: []string{"budget", "internal/redisconn", "refusal"}, foreign: []string{"github.com/redis/go-redis/v9"}},
	"audit":                     {own: []string{"audit/checkpoint", "audit/internal/logfile", "internal/safe", "refusal"}, foreign: []string{"github.com/cenkalti/backoff/v5"}},
	"audit/checkpoint":          {own: []string{"audit/internal/logfile", "internal/oserr", "internal/safe"}},
	"audit/approvals":           {own: []string{"approval", "audit", "audit/search"}},
	"audit/ship":                {own: []string{"audit", "audit/internal/logfile", "internal/safe", "telemetry"}, foreign: []string{"github.com/cenkalti/backoff/v5"}},
	"audit/search":              {own: []string{"audit", "audit/internal/logfile", "refusal", "wrapper"}},
	"audit/internal/logfile":    {own: []string{"internal/oserr"}, foreign: []string{"github.com/cenkalti/backoff/v5"}},
	"notices":                   {own: []string{"approval", "outbound", "internal/netx", "internal/safe", "notices/webhook", "store"}, foreign: []string{"github.com/cenkalti/backoff/v5"}},
	"notices/webhook":           {},
	"hook/window":               {},
	"hook":                      {own: []string{"hook/window", "internal/safe", "internal/strictjson", "refusal", "wrapper"}},
	"hook/callout":              {own: []string{"outbound", "hook", "internal/rawjson", "internal/strictjson"}},
	"approval":                  {own: []string{"internal/strictjson"}},
	"identity":                  {own: []string{"internal/ascii", "internal/netx", "internal/oserr", "internal/safe", "internal/strictjson"}, foreign: []string{"github.com/go-jose/go-jose/v4", "github.com/golang-jwt/jwt/v5"}},
	"store":                     {own: []string{"approval"}},
	"store/boltstore":           {own: []string{"approval", "internal/safe", "store", "store/internal/codec", "store/internal/testhooks"}, foreign: []string{"go.etcd.io/bbolt"}},
	"store/redisstore":          {own: []string{"approval", "internal/redisconn", "store", "store/boltstore", "store/internal/codec", "store/internal/testhooks"}, foreign: []string{"github.com/redis/go-redis/v9"}},
	"store/internal/codec":      {own: []string{"store"}},
	"store/internal/testhooks":  {},
	"upstream":                  {own: []string{"internal/invalid", "upstream/chat", "outbound", "internal/ascii", "internal/deadline", "internal/netx", "internal/safe", "internal/sse", "refusal", "tool"}, foreign: []string{"github.com/cenkalti/backoff/v5"}},
	"upstream/chat":             {own: []string{"internal/ascii", "internal/strictjson"}, foreign: []string{"github.com/go-json-experiment/json"}},
	"upstream/messages":         {own: []string{"internal/ascii", "internal/sse", "internal/strictjson"}},
	"upstream/responses":        {own: []string{"internal/ascii", "internal/strictjson", "refusal", "upstream"}},
	"telemetry":                 {own: []string{"internal/safe", "internal/text", "refusal", "tool"}, foreign: []string{"github.com/cenkalti/backoff/v5", "github.com/prometheus/client_golang", "go.opentelemetry.io/otel", "go.opentelemetry.io/proto/otlp", "google.golang.org/protobuf"}},
	"wrapper":                   {own: []string{"refusal"}},
	"gateway/events":            {own: []string{"internal/safe", "internal/strictjson", "internal/text", "parser", "store", "tool", "wrapper"}},
	"gateway/elicit":            {own: []string{"elicitation", "gateway/events", "internal/ascii", "internal/safe", "parser", "policy/boundary", "refusal", "tool"}},
	"gateway/refuse":            {own: []string{"parser", "refusal"}},
	"gateway/workers":           {own: []string{"gateway/refuse", "internal/deadline", "internal/safe", "refusal", "tool"}},
	"gateway/hooks":             {own: []string{"gateway/refuse", "hook", "hook/window", "internal/strictjson", "parser", "refusal", "tool"}},
	"gateway/trace":             {own: []string{"internal/safe", "audit", "gateway/refuse", "refusal", "registry", "tool"}},
	"gateway/threads":           {own: []string{"store"}},
	"gateway/callid":            {own: []string{}},
	"gateway/places":            {own: []string{"identity", "policy", "refusal", "registry"}},
	"gateway/violations":        {own: []string{"gateway/elicit", "parser", "policy/boundary", "refusal", "registry/schema"}},
	"gateway/consent":           {own: []string{"approval", "refusal", "registry", "tool"}},
	"gateway/dryrun":            {own: []string{"gateway", "policy", "refusal"}},
	"gateway/journal":           {own: []string{"audit", "internal/safe", "refusal", "registry"}, foreign: []string{"github.com/cenkalti/backoff/v5"}},
	// The kernel does not know what becomes of a call: gateway/calls imports it, and never the other way.
	"gateway":                {own: []string{"approval", "audit", "gateway/consent", "gateway/elicit", "gateway/events", "gateway/journal", "hook", "hook/window", "identity", "internal/safe", "parser", "policy", "policy/boundary", "ratelimit", "refusal", "registry", "registry/schema", "store", "tool", "gateway/refuse", "gateway/workers", "gateway/hooks", "gateway/trace", "gateway/callid", "gateway/threads", "gateway/places", "gateway/violations"}},
	"gateway/approvals":      {own: []string{"approval", "audit", "gateway", "gateway/consent", "gateway/journal", "internal/safe", "refusal", "registry", "store"}},
	"gateway/calls":          {own: []string{"approval", "audit", "gateway", "gateway/approvals", "gateway/calls/internal/bounds", "gateway/calls/internal/execution", "gateway/calls/internal/stored", "gateway/consent", "gateway/elicit", "gateway/events", "gateway/journal", "gateway/refuse", "internal/safe", "refusal", "store", "tool", "wrapper", "gateway/workers", "gateway/threads"}},
	"gateway/server":         {own: []string{"gateway", "identity", "internal/netx", "internal/safe", "refusal", "gateway/threads"}, foreign: []string{"github.com/gin-gonic/gin", "golang.org/x/time"}},
	"gateway/admin":          {own: []string{"approval", "audit", "budget", "candidate", "gateway", "gateway/approvals", "gateway/runs", "gateway/server", "identity", "internal/safe", "internal/sse", "internal/strictjson", "parser", "policy", "ratelimit", "refusal", "registry", "store", "toolservers", "wrapper", "gateway/trace"}},
	"gateway/console":        {own: []string{"audit", "candidate", "gateway", "gateway/admin", "identity", "refusal", "wrapper"}},
	"gateway/callback":       {own: []string{"gateway", "gateway/calls", "gateway/events", "gateway/server", "internal/ascii", "internal/weburl", "parser", "refusal", "tool", "wrapper"}, foreign: []string{"github.com/gin-gonic/gin"}},
	"gateway/mcp":            {own: []string{"internal/safe", "elicitation", "gateway", "gateway/approvals", "gateway/calls", "gateway/elicit", "gateway/events", "gateway/server", "internal/ascii", "internal/decimal", "internal/jsonrpc", "internal/sse", "mcp/wire", "parser", "refusal", "tool", "wrapper"}, foreign: []string{"github.com/gin-gonic/gin"}},
	"gateway/acpproxy":       {own: []string{"gateway/acpproxy/internal/attribution", "gateway/acpproxy/internal/forward", "hook", "acp/delegate", "acp/report", "acp/wire", "audit", "elicitation", "gateway", "gateway/approvals", "gateway/calls", "gateway/elicit", "internal/input", "internal/jsonrpc", "internal/rawjson", "internal/safe", "internal/strictjson", "internal/text", "refusal", "wrapper"}},
	"gateway/acp":            {own: []string{"acp/delegate", "acp/report", "acp/wire", "gateway", "gateway/approvals", "gateway/calls", "gateway/turns", "internal/jsonrpc", "internal/rawjson", "internal/strictjson", "internal/wholefile", "parser", "policy/boundary", "refusal", "registry", "upstream"}},
	"gateway/models":         {own: []string{"upstream/chat", "gateway/calls", "gateway/server", "parser", "refusal", "upstream", "wrapper"}, foreign: []string{"github.com/gin-gonic/gin"}},
	"gateway/runs":           {own: []string{"gateway", "gateway/calls", "gateway/server", "refusal", "wrapper"}, foreign: []string{"github.com/gin-gonic/gin"}},
	"gateway/native":         {own: []string{"internal/safe", "gateway", "gateway/calls", "gateway/server", "internal/ascii", "internal/sse", "parser", "refusal", "wrapper", "gateway/threads"}, foreign: []string{"github.com/gin-gonic/gin"}},
	"gateway/oxp":            {own: []string{"gateway", "gateway/calls", "gateway/server", "parser", "refusal", "wrapper"}, foreign: []string{"github.com/gin-gonic/gin"}},
	"gateway/messages":       {own: []string{"hook", "hook/window", "budget", "gateway", "gateway/calls", "gateway/server", "gateway/turns", "internal/clienttools", "internal/rawjson", "internal/sse", "parser", "refusal", "upstream", "upstream/messages", "wrapper"}, foreign: []string{"github.com/gin-gonic/gin"}},
	"gateway/turns":          {own: []string{"hook", "budget", "gateway", "gateway/approvals", "gateway/calls", "gateway/runs", "gateway/server", "internal/rawjson", "internal/safe", "internal/sse", "parser", "refusal", "registry", "upstream", "wrapper"}, foreign: []string{"github.com/gin-gonic/gin"}},
	"gateway/openai":         {own: []string{"internal/ascii", "upstream/chat", "hook", "hook/window", "budget", "gateway", "gateway/calls", "gateway/server", "gateway/turns", "internal/rawjson", "internal/sse", "internal/strictjson", "parser", "refusal", "upstream", "wrapper", "gateway/hooks"}, foreign: []string{"github.com/gin-gonic/gin"}},
	"gateway/responses":      {own: []string{"internal/ascii", "gateway/responses/internal/emit", "hook", "hook/window", "budget", "gateway", "gateway/calls", "gateway/server", "gateway/turns", "internal/clienttools", "internal/rawjson", "internal/strictjson", "parser", "refusal", "upstream", "upstream/responses", "wrapper"}, foreign: []string{"github.com/gin-gonic/gin"}},
	"configs/document":       {own: []string{"internal/invalid", "internal/oserr", "internal/similar", "refusal"}, foreign: []string{"github.com/go-json-experiment/json", "go.yaml.in/yaml/v4"}},
	"configs/limitfile":      {own: []string{"budget", "configs/document", "ratelimit"}},
	"configs/policylint":     {own: []string{"configs", "gateway/dryrun", "policy", "policy/condition"}},
	"configs/policytest":     {own: []string{"configs/document", "gateway/dryrun", "internal/similar", "parser", "policy", "refusal"}},
	"configs/secret":         {own: []string{"configs/document", "internal/oserr", "internal/program", "internal/renew"}},
	"configs/toolfile":       {own: []string{"configs/document", "configs/secret", "registry", "tool", "wrapper"}, foreign: []string{"go.yaml.in/yaml/v4"}},
	"toolimport":             {own: []string{"configs/document", "configs/toolfile", "internal/clienttools", "internal/similar", "refusal", "registry", "registry/format", "registry/schema", "tool", "wrapper"}, foreign: []string{"go.yaml.in/yaml/v4"}},
	"configs":                {own: []string{"budget", "approval", "configs/document", "configs/limitfile", "configs/policytest", "configs/secret", "configs/toolfile", "gateway", "gateway/dryrun", "hook", "identity", "internal/ascii", "internal/netx", "internal/similar", "notices/webhook", "parser", "internal/wholefile", "policy", "policy/condition", "ratelimit", "refusal", "registry", "telemetry", "tool", "toolservers/lockfile", "upstream", "wrapper"}},
	"configs/difference":     {own: []string{"configs", "policy", "policy/compare", "registry"}},
	"configs/reload":         {own: []string{"configs", "configs/document", "internal/netx", "internal/safe"}},
	"toolservers":            {own: []string{"configs", "internal/cli", "internal/terminal", "parser", "refusal", "registry", "tool", "toolservers/lockfile"}},
	"toolservers/lockfile":   {own: []string{"configs/document", "configs/toolfile", "parser", "registry", "tool", "toolimport", "wrapper"}},
	"app":                    {own: []string{"budget/redisbudget", "budget", "acp/delegate", "acp/wire", "approval", "audit", "candidate", "audit/checkpoint", "audit/ship", "configs", "configs/reload", "configs/secret", "engine", "engine/demo", "engine/mcp", "outbound", "gateway", "internal/wholefile", "gateway/acp", "gateway/acpproxy", "gateway/admin", "gateway/callback", "gateway/calls", "gateway/console", "gateway/mcp", "gateway/messages", "gateway/models", "gateway/native", "gateway/openai", "gateway/oxp", "gateway/responses", "gateway/runs", "gateway/server", "gateway/server/framing", "gateway/turns", "hook/callout", "identity", "internal/cli", "internal/deadline", "internal/netx", "internal/oserr", "internal/program", "internal/redisconn", "internal/safe", "notices", "ratelimit", "ratelimit/redislimit", "refusal", "registry", "store", "store/boltstore", "store/redisstore", "telemetry", "tool", "toolservers", "toolservers/lockfile", "upstream", "wrapper"}},
	"app/completions":        {own: []string{"gateway", "gateway/calls", "gateway/native", "internal/cli", "internal/input", "internal/oserr", "internal/terminal", "parser", "refusal"}},
	"app/demo":               {own: []string{"gateway", "gateway/calls", "internal/terminal"}},
	"starter":                {own: []string{"configs", "configs/document", "configs/secret", "internal/netx", "internal/oserr", "internal/wholefile", "registry", "toolimport", "upstream", "wrapper"}},
	"cmd/callgate":           {own: []string{"app", "app/completions", "app/demo", "audit", "cmd/callgate/internal/approvalscmd", "cmd/callgate/internal/auditcmd", "cmd/callgate/internal/cmdenv", "cmd/callgate/internal/configcmd", "cmd/callgate/internal/initcmd", "cmd/callgate/internal/policycmd", "cmd/callgate/internal/toolscmd", "configs", "configs/document", "gateway", "gateway/acpproxy", "gateway/server", "identity", "internal/cli", "internal/input", "internal/netx", "internal/oserr", "internal/terminal"}, foreign: []string{"github.com/gin-gonic/gin", "github.com/spf13/cobra"}},
	"internal/input":         {own: []string{"internal/safe"}},
	"internal/cli":           {own: []string{"wrapper"}},
	"internal/terminal":      {foreign: []string{"golang.org/x/term"}},
	"internal/oserr":         {},
	"internal/configtest":    {own: []string{"configs/document"}, foreign: []string{"github.com/rogpeppe/go-internal"}},
	"internal/acptest":       {own: []string{"internal/corpora", "internal/strictjson"}},
	"internal/corpora":       {own: []string{"internal/decimal"}, foreign: []string{"github.com/santhosh-tekuri/jsonschema/v6"}},
	"internal/budgettest":    {own: []string{"budget", "refusal"}, foreign: []string{"pgregory.net/rapid"}},
	"internal/facetest":      {own: []string{"approval", "audit", "configs", "gateway", "gateway/calls", "gateway/native", "gateway/server", "internal/corpora", "internal/leaks", "ratelimit", "refusal", "store", "telemetry", "tool", "gateway/workers"}, foreign: []string{"github.com/gin-gonic/gin"}},
	"internal/lossy":         {},
	"internal/redistest":     {own: []string{"internal/ports"}, foreign: []string{"github.com/alicebob/miniredis/v2", "github.com/redis/go-redis/v9"}},
	"internal/redisconn":     {foreign: []string{"github.com/redis/go-redis/v9"}},
	"internal/netx":          {},
	"internal/sse":           {},
	"internal/renew":         {own: []string{"internal/safe"}},
	"internal/safe":          {},
	"internal/wholefile":     {},
	"gateway/server/framing": {own: []string{"internal/deadline"}},
	"internal/ascii":         {},
	"internal/invalid":       {},
	"mcp/wire":               {own: []string{"internal/ascii"}},
	"acp/wire":               {own: []string{"internal/strictjson", "internal/weburl", "parser", "refusal"}},
	"acp/delegate":           {own: []string{"acp/wire"}},
	"acp/report":             {own: []string{"internal/decimal", "acp/wire", "audit", "gateway/approvals", "refusal", "registry", "wrapper"}},
	"internal/deadline":      {},
	"internal/decimal":       {own: []string{"internal/ascii"}},
	"internal/rawjson":       {own: []string{"internal/strictjson", "parser"}},
	"internal/jsonrpc":       {own: []string{"internal/safe", "internal/strictjson", "parser", "wrapper"}},
	"internal/program":       {own: []string{"wrapper"}},
	"internal/strictjson":    {foreign: []string{"github.com/go-json-experiment/json"}},
	"internal/ports":         {},
	"internal/weburl":        {own: []string{"internal/ascii"}},
	"internal/parallel":      {},
	"internal/leaks":         {foreign: []string{"go.uber.org/goleak"}},
	"internal/testrun":       {},
	"internal/text":          {},

	"gateway/acpproxy/internal/forward":     {own: []string{"internal/jsonrpc", "internal/safe", "wrapper"}},
	"gateway/acpproxy/internal/attribution": {own: []string{"acp/wire", "internal/text"}},
	"gateway/responses/internal/emit":       {own: []string{"gateway", "gateway/calls", "gateway/turns", "internal/rawjson", "internal/strictjson", "upstream/responses"}},
	"ratelimit/internal/limittest":          {own: []string{"internal/redistest", "ratelimit", "refusal"}, foreign: []string{"pgregory.net/rapid"}},

	"gateway/calls/internal/bounds":    {own: []string{"gateway", "refusal"}},
	"gateway/calls/internal/execution": {own: []string{"approval", "audit", "gateway", "gateway/approvals", "gateway/calls/internal/stored", "gateway/consent", "gateway/elicit", "gateway/events", "gateway/journal", "gateway/refuse", "internal/deadline", "internal/safe", "parser", "refusal", "store", "tool", "wrapper", "gateway/workers", "gateway/callid"}},
	"gateway/calls/internal/stored":    {own: []string{"gateway", "gateway/events", "internal/safe", "refusal", "store", "tool", "wrapper"}},

	// Families of commands import cmdenv, and never each other.
	"cmd/callgate/internal/approvalscmd": {own: []string{"cmd/callgate/internal/cmdenv", "configs/document", "internal/cli", "internal/netx", "refusal"}, foreign: []string{"github.com/spf13/cobra"}},
	"cmd/callgate/internal/auditcmd":     {own: []string{"app", "audit", "audit/approvals", "audit/checkpoint", "audit/search", "cmd/callgate/internal/cmdenv", "configs", "gateway", "internal/cli", "policy"}, foreign: []string{"github.com/spf13/cobra"}},
	"cmd/callgate/internal/cmdenv":       {own: []string{"app", "audit", "audit/search", "configs", "engine", "gateway/calls", "internal/cli", "internal/input", "internal/oserr", "internal/terminal", "parser", "policy", "tool", "toolservers/lockfile"}, foreign: []string{"github.com/spf13/cobra"}},
	"cmd/callgate/internal/configcmd":    {own: []string{"cmd/callgate/internal/cmdenv", "configs", "configs/document", "internal/cli", "internal/wholefile"}, foreign: []string{"github.com/rogpeppe/go-internal", "github.com/spf13/cobra"}},
	"cmd/callgate/internal/initcmd":      {own: []string{"cmd/callgate/internal/cmdenv", "configs", "internal/cli", "internal/input", "internal/terminal", "policy", "starter", "toolimport", "toolservers", "toolservers/lockfile"}, foreign: []string{"github.com/spf13/cobra"}},
	"cmd/callgate/internal/policycmd":    {own: []string{"audit", "audit/search", "cmd/callgate/internal/cmdenv", "configs", "configs/difference", "configs/document", "configs/policylint", "configs/policytest", "gateway/admin", "internal/cli", "internal/oserr", "parser", "policy", "policy/compare", "policy/narrow", "refusal", "replay"}, foreign: []string{"github.com/spf13/cobra"}},
	"cmd/callgate/internal/toolscmd":     {own: []string{"cmd/callgate/internal/cmdenv", "configs", "configs/document", "internal/cli", "internal/netx", "outbound", "policy", "registry", "toolimport", "toolservers", "toolservers/lockfile"}, foreign: []string{"github.com/spf13/cobra"}},
}

func TestImportTable(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != "." && (strings.HasPrefix(name, ".") || name == "testdata") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); path != "." && err == nil {
				return filepath.SkipDir // a module of its own
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		row, listed := table[folder]
		if !listed {
			t.Errorf("%s is in a folder that the table does not list", path)
			return nil
		}
		seen[folder] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			if own, ok := strings.CutPrefix(imported, module); ok {
				if !slices.Contains(row.own, own) {
					t.Errorf("%s imports %s, which the table does not allow", path, own)
				}
			} else if first, _, _ := strings.Cut(imported, "/"); strings.Contains(first, ".") {
				confined := slices.ContainsFunc(row.foreign, func(m string) bool {
					return imported == m || strings.HasPrefix(imported, m+"/")
				})
				if !confined {
					t.Errorf("%s imports %s, which is not confined to %s", path, imported, folder)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for folder := range table {
		if !seen[folder] {
			t.Errorf("the table lists %s, which holds no code", folder)
		}
	}
}

// tokenizers says which packages may import a JSON tokenizer of third parties, and why. All
// others read strict JSON by internal/strictjson, or by parser, whose faults are those of the
// language; parser has a tokenizer of its own.
var tokenizers = map[string]string{
	"internal/strictjson": "the one reader of foreign JSON",
	"upstream/chat":       "the chunks of a stream are read where they lie, many a second",
	"configs/document":    "every token of a configuration file has its line and column",
}

// TestTokenizersAreConfined: a further reader of JSON needs a reason.
func TestTokenizersAreConfined(t *testing.T) {
	const module = "github.com/go-json-experiment/json"
	for folder, row := range table {
		if _, allowed := tokenizers[folder]; !allowed && slices.Contains(row.foreign, module) {
			t.Errorf("%s may import %s; expected internal/strictjson, or a reason in tokenizers", folder, module)
		}
	}
	for folder := range tokenizers {
		if !slices.Contains(table[folder].foreign, module) {
			t.Errorf("tokenizers names %s, which imports none", folder)
		}
	}
}

// TestDesignNamesEveryPackage: docs/design.md says of every package what it holds. A
// package below an internal folder of another is that one's own matter.
func TestDesignNamesEveryPackage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("docs", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	for folder := range table {
		if !strings.Contains(folder, "/internal/") && !strings.Contains(string(page), "`"+folder+"`") {
			t.Errorf("docs/design.md does not say what %s holds", folder)
		}
	}
}
