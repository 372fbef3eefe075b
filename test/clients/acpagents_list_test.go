package clients_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
)

func openCode() agent {
	return agent{
		name: "OpenCode",
		command: func(dir, _ string) []string {
			return []string{filepath.Join(dir, "node_modules/opencode-linux-x64/bin/opencode"), "acp"}
		},
		env: func(_, model string) map[string]string {
			return map[string]string{
				"OPENCODE_CONFIG_CONTENT": fmt.Sprintf(`{"model": "local/coder", "small_model": "local/text", "autoupdate": false, "share": "disabled",
					"permission": {"read": "ask", "edit": "ask", "bash": "ask", "external_directory": "ask"},
					"provider": {"local": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": "%s/v1", "apiKey": "made-up"},
						"models": {"coder": {"tool_call": true, "limit": {"context": 100000, "output": 4000}}, "text": {}}}}}`, model),
				"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1",
				"OPENCODE_DISABLE_DEFAULT_PLUGINS": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
			}
		},
		policy: askingPolicy,
		turns: func(project string) []turn {
			notes := filepath.Join(project, "notes.md")
			return []turn{
				calling("read", map[string]any{"filePath": notes}),
				calling("edit", map[string]any{"filePath": notes, "oldString": "not there", "newString": "x"}),
				calling("edit", map[string]any{"filePath": notes, "oldString": "a draft", "newString": "the final text"}),
				calling("bash", map[string]any{"command": "touch made.md", "description": "Make a file"}),
				calling("bash", map[string]any{"command": "rm -rf .", "description": "Remove all"}),
				{Text: ending},
			}
		},
		decided: []string{
			"acp.permission.read tool_call", "acp.permission.edit tool_call", "acp.fs.write tool_call",
			"acp.permission.execute refused approval_required", "acp.permission.execute tool_call", "acp.permission.execute refused permission_denied",
		},
		byEditor: true,
		failed:   2,
	}
}

func qwenCode() agent {
	return agent{
		name: "Qwen Code",
		command: func(dir, node string) []string {
			// Its own default is a mode in which a model decides what is asked.
			return []string{node, filepath.Join(dir, "node_modules/@qwen-code/qwen-code/cli-entry.js"),
				"--acp", "--auth-type", "openai", "--model", "coder", "--approval-mode", "default"}
		},
		env: func(_, model string) map[string]string {
			return map[string]string{"OPENAI_API_KEY": "made-up", "OPENAI_BASE_URL": model + "/v1", "OPENAI_MODEL": "coder", "NO_BROWSER": "1"}
		},
		policy: askingPolicy,
		turns: func(project string) []turn {
			notes := filepath.Join(project, "notes.md")
			return []turn{
				calling("read_file", map[string]any{"file_path": notes}),
				calling("edit", map[string]any{"file_path": notes, "old_string": "not there", "new_string": "x"}),
				calling("edit", map[string]any{"file_path": notes, "old_string": "a draft", "new_string": "the final text"}),
				calling("run_shell_command", map[string]any{"command": "touch made.md", "description": "Make a file", "is_background": false}),
				calling("run_shell_command", map[string]any{"command": "rm -rf .", "description": "Remove all", "is_background": false}),
				{Text: ending},
			}
		},
		decided: []string{
			"acp.fs.read tool_call", "acp.fs.read tool_call", "acp.fs.read tool_call", "acp.permission.edit tool_call", "acp.fs.read tool_call", "acp.fs.write tool_call",
			"acp.permission.execute refused approval_required", "acp.permission.execute tool_call", "acp.permission.execute refused permission_denied",
		},
		byEditor: true,
		failed:   2,
	}
}

// claudeTools are tools of Claude Code, registered under their names: its agent names them, with
// their arguments.
const claudeTools = `tools:
  - {name: Read, kind: read, effect: read, run: {type: client}, input_schema: {type: object, required: [file_path], properties: {file_path: {type: string, x-boundary: path}}}}
  - name: Edit
    kind: edit
    effect: once
    run: {type: client}
    input_schema:
      type: object
      required: [file_path, old_string, new_string]
      properties:
        file_path: {type: string, x-boundary: path}
        old_string: {type: string}
        new_string: {type: string}
        replace_all: {type: boolean}
  - {name: Bash, kind: execute, effect: once, run: {type: client}, input_schema: {type: object, required: [command], properties: {command: {type: string}, description: {type: string}}}}
# end
`

func claudeCode() agent {
	return agent{
		name: "Claude Code",
		command: func(dir, node string) []string {
			return []string{node, filepath.Join(dir, "node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js")}
		},
		env: func(_, model string) map[string]string {
			return map[string]string{
				"ANTHROPIC_BASE_URL": model, "ANTHROPIC_API_KEY": "made-up", "ANTHROPIC_MODEL": "claude-coder",
				"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
			}
		},
		files: func(string) map[string]string {
			return map[string]string{".claude/settings.json": `{"permissions": {"ask": ["Read", "Edit", "Write", "Bash", "Glob", "Grep"]}}`}
		},
		tools: claudeTools,
		policy: `p, Analyst, acme/alpha, Read, , allow
p, Analyst, acme/alpha, Edit, , allow
p, Analyst, acme/alpha, Bash, "args.command.startsWith('touch ')", ask:person
# end
`,
		turns: func(project string) []turn {
			notes := filepath.Join(project, "notes.md")
			return []turn{
				calling("Read", map[string]any{"file_path": notes}),
				repaired(calling("Edit", map[string]any{"file_path": notes, "old_string": "not there", "new_string": "x"}),
					calling("Edit", map[string]any{"file_path": notes, "old_string": "a draft", "new_string": "the final text"})),
				calling("Bash", map[string]any{"command": "touch made.md", "description": "Make a file"}),
				repaired(calling("Bash", map[string]any{"command": "rm -rf .", "description": "Remove all"}), turn{Text: ending}),
			}
		},
		decided: []string{"Read tool_call", "Edit tool_call", "Bash refused approval_required", "Bash tool_call", "Bash refused permission_denied"},
		failed:  2,
	}
}

func codexACP() agent {
	patch := json.RawMessage(`{"type":"custom_tool_call","status":"completed","name":"apply_patch","input":"*** Begin Patch\n*** Update File: notes.md\n@@\n-This is a draft.\n+This is the final text.\n*** End Patch\n"}`)
	outside := func(command string) turn {
		return calling("exec_command", map[string]any{"cmd": command, "sandbox_permissions": "require_escalated", "justification": "May I?"})
	}
	return agent{
		name: "Codex",
		command: func(dir, node string) []string {
			return []string{node, filepath.Join(dir, "node_modules/@agentclientprotocol/codex-acp/dist/index.js")}
		},
		env: func(home, _ string) map[string]string {
			return map[string]string{
				"CODEX_HOME": filepath.Join(home, "codex"), "LOCAL_KEY": "made-up", "CODEX_API_KEY": "made-up", "NO_BROWSER": "1",
				"MODEL_PROVIDER": "local", "INITIAL_AGENT_MODE": "read-only",
			}
		},
		files: func(model string) map[string]string {
			return map[string]string{"codex/config.toml": fmt.Sprintf(`model = "gpt-5.5"
model_provider = "local"
web_search = "disabled"
[agents]
enabled = false
[model_providers.local]
name = "local"
base_url = "%s/v1"
wire_api = "responses"
env_key = "LOCAL_KEY"
`, model)}
		},
		// It reads in a sandbox of its own, and asks nobody.
		flags:    []string{"--unjudged", "note"},
		unjudged: "kind=read",
		failed:   1,
		policy:   askingPolicy,
		turns: func(string) []turn {
			return []turn{
				calling("exec_command", map[string]any{"cmd": "cat notes.md"}),
				{Items: []json.RawMessage{patch}},
				outside("touch made.md"),
				outside("rm -rf ."),
				{Text: ending},
			}
		},
		decided: []string{
			"acp.unjudged refused permission_denied", "acp.permission.edit tool_call",
			"acp.permission.execute refused approval_required", "acp.permission.execute tool_call", "acp.permission.execute refused permission_denied",
		},
	}
}
