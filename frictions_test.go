package callgate_test

import (
	"slices"
	"strings"
	"testing"
)

// newcomer is one thing that people who meet Callgate for the first time need, with the tests that
// try it, and the headings of pages that show it.
type newcomer struct {
	needs string
	tests []string
	pages []string // FILE, or FILE#HEADING
}

// newcomers are the needs of an application's developer, an operator and the user of a desktop
// client, and of everybody at the command line. A need is met by what the tests try: who removes
// or renames one of them decides what becomes of the need.
var newcomers = []newcomer{
	// Applications.
	{"several turns of a streamed run are apart", []string{"TestTurnsStandApart"}, []string{"docs/clients.md#what-the-application-does-not-see"}},
	{"a path of a known API that is not served answers in that API's shape", []string{"TestUnknownPathsOfAPIs"}, nil},
	{"no failure advises to try again what cannot be retried", []string{"TestMessagesAgreeWithRetryable", "TestRetryable"}, nil},
	{"every path and every code of requests to models is in the reference", []string{"TestReferenceHasEveryCode"}, []string{"docs/reference.md#http", "docs/reference.md#stages-and-codes"}},
	{"a bound of a run is the operator's also in a stream", []string{"TestUsage", "TestTokenBudget"}, nil},
	{"frameworks may bring tools that no registry has", []string{"TestBroughtTools", "TestToolsOfTheRequestAreRefused"}, []string{"docs/clients.md#tools-of-the-application"}},
	{"a tool of the request that the registry states otherwise is named", []string{"TestToolsReplaced"}, []string{"docs/clients.md#tools-of-the-application"}},
	{"a run that was repaired can be looked at", []string{"TestFace"}, []string{"docs/reference.md#what-a-run-did", "docs/clients.md#what-the-application-does-not-see"}},
	{"what results look like to a model is said", nil, []string{"docs/clients.md#what-the-application-does-not-see"}},
	{"a refusal need not end the run of a framework", []string{"TestRefusalsAsMessage"}, []string{"docs/clients.md"}},
	{"requests of an application are recorded for import", []string{"TestCapturePage", "TestCaptureRefuses"}, []string{"docs/capture.md"}},
	{"the Responses and Messages APIs are served", []string{"TestEveryFace"}, []string{"docs/responses.md", "docs/messages.md"}},
	{"models behind a wildcard are listed", []string{"TestListModels", "TestList"}, nil},
	{"clients are named with the line that points them here", []string{"TestClients"}, []string{"docs/clients.md#clients"}},

	// Operators.
	{"a refused call is explained by its id", []string{"TestPolicyExplainCall", "TestAuditShow", "TestFindingOut"}, []string{"docs/finding-out.md#why-a-call-was-refused"}},
	{"the log is searched by agent, tool, code and time", []string{"TestAuditQuery"}, []string{"docs/finding-out.md#what-was-refused"}},
	{"an agent that no project lists is warned of", []string{"TestWarnings"}, nil},
	{"policy explain says which names it does not know", []string{"TestExplainUnknown"}, nil},
	{"the configuration is found without a flag", []string{"TestLocate", "TestConfigCheckFile"}, nil},
	{"a small configuration is written by one command", []string{"TestInit", "TestTutorials"}, []string{"docs/tutorial-operator.md"}},
	{"editors complete configuration files", []string{"TestEveryKeyHasASchema"}, []string{"docs/guide.md#editors"}},
	{"programs read the faults of a configuration, with the JSON Pointer of each", []string{"TestConfigFormat", "TestPointers", "TestFaulty"}, []string{"docs/generated/commands.md#callgate-config-check"}},
	{"the line that ends each file is added by a command", []string{"TestSeal"}, nil},
	{"tools take credentials in any header, basic and OAuth", []string{"TestCredentialForms", "TestOAuthRequests"}, []string{"docs/credentials.md#forms"}},
	{"an import is a choice, and its notes are grouped", []string{"TestFiltersOfOpenAPI", "TestGroupNotes", "TestOnly"}, []string{"docs/reference.md#configuration"}},
	{"an edit of the policy is tested, compared and tried before it is served", []string{"TestPolicyTestsPage", "TestDifferences", "TestPolicyLintPage"}, []string{"docs/policy-tests.md", "docs/policy-changes.md", "docs/candidate.md"}},
	{"a reload names the files that have changed", []string{"TestFilesChangedSince", "TestReload"}, nil},
	{"the log has a format for people, and levels", []string{"TestServeLog"}, []string{"docs/operations.md#the-log"}},
	{"pages show what is decided and what waits", []string{"TestConsole"}, []string{"docs/console.md"}},
	{"counters have agents and tools where it is wanted, and the build", []string{"TestCallLabels", "TestBuildInfo"}, []string{"docs/reference.md#metrics"}},
	{"buckets are numbers that people write", []string{"TestBuckets"}, nil},
	{"tokens and money are bounded and counted", []string{"TestBudgetRefusesMessages"}, []string{"docs/budgets.md"}},
	{"alerts, a dashboard and a chart are there", []string{"TestAlerts", "TestDashboard", "TestChart", "TestComposeMonitoring"}, []string{"docs/operations.md#alerts", "docs/kubernetes/README.md#the-helm-chart"}},

	// Desktop clients and MCP.
	{"a refusal of a tool with an output schema reaches every client", []string{"TestMCP13ToolFails", "TestMCP14OutputSchema"}, nil},
	{"names of tools are those that every client accepts", []string{"TestWireNames"}, []string{"docs/mcp.md#callgate-as-a-server-over-http"}},
	{"a client's own file becomes a configuration", []string{"TestInit", "TestMCPSnippet"}, []string{"docs/tutorial-desktop.md#notes"}},
	{"programs get the variables that they need, and no others", []string{"TestEnvironmentOfPrograms"}, []string{"docs/servers.md#programs"}},
	{"the last words of a program that died are shown", []string{"TestWordsOfProgramsThatDie"}, []string{"docs/servers.md#programs"}},
	{"a dry run says what would be accepted", []string{"TestAcceptElsewhere"}, nil},
	{"a changed definition is shown beside the accepted one", []string{"TestDifferencesOfATool"}, []string{"docs/servers.md#quarantine"}},
	{"arguments of accepted tools stay within the project", []string{"TestBoundariesOfServers"}, []string{"docs/servers.md#what-accepting-means"}},
	{"no file of tools is needed where servers bring them", []string{"TestInit"}, nil},

	// The command line and the pages.
	{"help is in groups, and values of flags are told from words", []string{"TestHelpInGroups", "TestFlagValueNames"}, []string{"docs/generated/commands.md"}},
	{"a typing error is answered with the command that was meant", []string{"TestKnownCommand"}, nil},
	{"a project is named in one way everywhere", []string{"TestProjectFlag"}, nil},
	{"a command that waits for a terminal says so", []string{"TestTerminalIsWaitedFor"}, nil},
	{"colors can be switched off", []string{"TestWantsColor"}, nil},
	{"the version is said, and there are releases to install", []string{"TestVersionFlag", "TestReleasePlatforms", "TestNPM", "TestGoInstall", "TestChangelog"}, []string{"docs/install.md"}},
	{"pages lead on, are found by task, and their words are explained", []string{"TestPagesFollowEachOther", "TestEveryPageIsReached"}, []string{"docs/README.md#tasks", "docs/glossary.md", "docs/concepts.md"}},
	{"what a page shows works", []string{"TestReadmeExamples", "TestTutorials"}, []string{"docs/README.md#commands-that-tests-run"}},
}

// TestNewcomers: the tests and the headings that meet each need are there.
func TestNewcomers(t *testing.T) {
	tests, all := testsOfProject(t), pages(t)
	for _, n := range newcomers {
		if len(n.tests)+len(n.pages) == 0 {
			t.Errorf("%s: no test tries it and no page shows it", n.needs)
		}
		for _, name := range n.tests {
			if !tests[name] {
				t.Errorf("%s: there is no test %s", n.needs, name)
			}
		}
		for _, place := range n.pages {
			file, anchor, _ := strings.Cut(place, "#")
			if page, ok := all[file]; !ok || anchor != "" && !slices.Contains(page.anchors, anchor) {
				t.Errorf("%s: there is no %s", n.needs, place)
			}
		}
	}
}
