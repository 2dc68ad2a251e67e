{{/* Names and labels. */}}

{{- define "podium.name" -}}
{{- .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Prefix of every object: the release's name, which is enough where it is the chart's. Leaves room for suffixes. */}}
{{- define "podium.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* What selects the pods of one component. Takes root, component. */}}
{{- define "podium.selector" -}}
app.kubernetes.io/name: {{ include "podium.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{/* Labels of every object. Takes root, component. */}}
{{- define "podium.labels" -}}
{{ include "podium.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: podium
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end }}

{{/* Where a gRPC service is found: a headless name, which stands for every replica. Takes root, component, port. */}}
{{- define "podium.address" -}}
{{ include "podium.fullname" .root }}-{{ .component }}.{{ .root.Release.Namespace }}.svc:{{ .port }}
{{- end }}

{{/*
The image of a component: by digest, or by tag where the profile allows it. Takes root, image, component, and
imageValue: the value that names it, if not that of the component.
*/}}
{{- define "podium.image" -}}
{{- $registry := .root.Values.image.registry | trimSuffix "/" }}
{{- $name := .image.repository }}
{{- if $registry }}{{ $name = printf "%s/%s" $registry .image.repository }}{{ end }}
{{- if .image.digest }}
{{- printf "%s@%s" $name .image.digest }}
{{- else if eq .root.Values.profile "production" }}
{{- fail (printf "profile=production runs images by digest: set %s.digest, such as sha256:..." (.imageValue | default (printf "%s.image" .component))) }}
{{- else }}
{{- printf "%s:%s" $name (.image.tag | default .root.Chart.AppVersion) }}
{{- end }}
{{- end }}

{{/* The Secret with a component's certificate. Takes root, component. */}}
{{- define "podium.tlsSecret" -}}
{{- index .root.Values.tls.secretNames .component | default (printf "%s-%s-tls" (include "podium.fullname" .root) .component) }}
{{- end }}

{{- define "podium.serviceAccount" -}}
{{ include "podium.fullname" .root }}-{{ .component }}
{{- end }}

{{/* Whether the log is in PostgreSQL. Empty: in a file of audit's. */}}
{{- define "podium.onPostgres" -}}
{{- if .Values.database.existingSecret }}true{{ end }}
{{- end }}

{{/* What must hold between values, told in words before anything is rendered. */}}
{{- define "podium.checks" -}}
{{- if and (not (include "podium.onPostgres" .)) (gt (int .Values.audit.replicas) 1) }}
{{- fail "audit.replicas above 1 need PostgreSQL: set database.existingSecret, or audit.replicas=1" }}
{{- end }}
{{- if and (eq .Values.profile "production") (not (include "podium.onPostgres" .)) }}
{{- fail "profile=production keeps the log in PostgreSQL: set database.existingSecret (README, The database)" }}
{{- end }}
{{- if and (include "podium.onPostgres" .) (not .Values.audit.keys.existingSecret) }}
{{- fail "with PostgreSQL the log's keys are shared by all replicas: set audit.keys.existingSecret (README, The log's keys)" }}
{{- end }}
{{- if and .Values.witness.enabled (not .Values.witness.name) }}
{{- fail "witness.enabled=true needs witness.name: the name on its signature lines, such as witness.example.com/w1" }}
{{- end }}
{{- if and .Values.ingress.enabled (not (and .Values.ingress.host .Values.ingress.tlsSecret)) }}
{{- fail "ingress.enabled=true needs ingress.host and ingress.tlsSecret: nothing is served from outside without TLS" }}
{{- end }}
{{- $model := .Values.conductor.model }}
{{- if and (eq .Values.conductor.engine "vllm") (not (or $model.existingClaim $model.volume)) }}
{{- fail "conductor.engine=vllm needs the checkpoint on a volume: set conductor.model.existingClaim or conductor.model.volume" }}
{{- end }}
{{- if and $model.existingClaim $model.volume }}
{{- fail "conductor.model.existingClaim and conductor.model.volume exclude each other: leave one empty" }}
{{- end }}
{{- if and (eq .Values.tls.mode "cert-manager") (not .Values.tls.issuerRef.name) }}
{{- fail "tls.mode=cert-manager needs tls.issuerRef.name: an Issuer of this namespace, or a ClusterIssuer with tls.issuerRef.kind" }}
{{- end }}
{{- if and (include "podium.fromResources" .) (or .Values.tenants .Values.pool.workers) }}
{{- fail "pool.source=resources reads Worker and Tenant objects: leave pool.workers and tenants empty, and apply objects (README, The pool)" }}
{{- end }}
{{- if and (eq .Values.pool.source "files") (not .Values.existingConfigMap) }}
{{- if not .Values.tenants }}
{{- fail "tenants is empty, so nobody could call: write `tenants: [{id: research, keys: []}]` to tenants.yaml, run `podium keys create alice --tenants tenants.yaml`, and give that file to --values" }}
{{- end }}
{{- if not (or .Values.pool.workers .Values.demo.enabled) }}
{{- fail "pool.workers is empty, so nobody could answer: add a worker, or set demo.enabled=true" }}
{{- end }}
{{- end }}
{{- if and .Values.demo.enabled (eq .Values.profile "production") }}
{{- fail "profile=production has no demo workers: set demo.enabled=false" }}
{{- end }}
{{- end }}
