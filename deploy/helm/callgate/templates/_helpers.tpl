{{- define "callgate.labels" -}}
app.kubernetes.io/name: callgate
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "callgate.selector" -}}
app.kubernetes.io/name: callgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{/* The name of every object: that of the release, with callgate in it once. */}}
{{- define "callgate.name" -}}
{{- if contains "callgate" .Release.Name }}{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}{{ printf "%s-callgate" (.Release.Name | trunc 43 | trimSuffix "-") }}{{ end }}
{{- end }}

{{- define "callgate.image" -}}
{{- if .Values.image.digest }}{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else }}{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}{{ end }}
{{- end }}

{{/* The key of a file in the ConfigMap, where a key has no slash. */}}
{{- define "callgate.key" -}}
{{- . | replace "/" ".." }}
{{- end }}

{{/* The port of an address, which must be one of every address of the pod. */}}
{{- define "callgate.port" -}}
{{- regexFind "[0-9]+$" . }}
{{- end }}

{{/* The main file as the pod reads it; fails if the rest of the chart does not fit it. */}}
{{- define "callgate.main" -}}
{{- $main := index .Values.config "callgate.yaml" | fromYaml }}
{{- if $main.Error }}{{ fail (printf "config: callgate.yaml is no YAML: %s" $main.Error) }}{{ end }}
{{- $server := $main.server | default dict }}
{{- $listen := $server.listen | default "" }}
{{- if not (regexMatch "^(0\\.0\\.0\\.0|\\[::\\]):[0-9]+$" $listen) }}{{ fail (printf "config: server.listen is %q; expected 0.0.0.0:PORT, which the Service and the probes reach" $listen) }}{{ end }}
{{- if ne ($main.data_dir | default "") "/var/lib/callgate" }}{{ fail "config: data_dir must be /var/lib/callgate, where the volume is" }}{{ end }}
{{- $drain := $server.shutdown_timeout | default "" | toString }}
{{- if not (regexMatch "^[0-9]+s$" $drain) }}{{ fail (printf "config: server.shutdown_timeout is %q; expected seconds, such as 30s" $drain) }}{{ end }}
{{- if lt (int .Values.terminationGracePeriodSeconds) (add 5 (trimSuffix "s" $drain | int) | int) }}{{ fail (printf "terminationGracePeriodSeconds must be 5 s longer than server.shutdown_timeout, %s: the pod would be killed with calls in flight" $drain) }}{{ end }}
{{- if and .Values.serviceMonitor.enabled (not (include "callgate.adminPort" .)) }}{{ fail "serviceMonitor needs server.admin_listen: 0.0.0.0:PORT in config" }}{{ end }}
{{- if and .Values.serviceMonitor.enabled (not (and .Values.serviceMonitor.credentials.name .Values.serviceMonitor.credentials.key)) }}{{ fail "serviceMonitor.credentials must name a Secret and its key with the credential of an operator" }}{{ end }}
{{- if hasKey .Values.config "principals.yaml" }}{{ fail "config: principals.yaml belongs to principals, which is a Secret" }}{{ end }}
{{- end }}

{{/* The port of the admin listener, if other pods reach it. */}}
{{- define "callgate.adminPort" -}}
{{- $main := index .Values.config "callgate.yaml" | fromYaml }}
{{- $address := ($main.server | default dict).admin_listen | default "" }}
{{- if regexMatch "^(0\\.0\\.0\\.0|\\[::\\]):[0-9]+$" $address }}{{ include "callgate.port" $address }}{{ end }}
{{- end }}

{{- define "callgate.httpPort" -}}
{{- $main := index .Values.config "callgate.yaml" | fromYaml }}
{{- include "callgate.port" $main.server.listen }}
{{- end }}
