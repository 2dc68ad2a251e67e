{{/* What every pod has. Takes root, component, values (of the component). */}}

{{- define "podium.podMetadata" -}}
labels:
  {{- include "podium.labels" (dict "root" .root "component" .component) | nindent 2 }}
{{- with .values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "podium.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "podium.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* Settings of a pod besides its containers and volumes. */}}
{{- define "podium.podSpec" -}}
serviceAccountName: {{ include "podium.serviceAccount" . }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  {{- include "podium.podSecurityContext" . | nindent 2 }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  {{- if .values.topologySpreadConstraints }}
  {{- toYaml .values.topologySpreadConstraints | nindent 2 }}
  {{- else }}
  {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - maxSkew: 1
    topologyKey: {{ $key }}
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "podium.selector" (dict "root" $.root "component" $.component) | nindent 8 }}
  {{- end }}
  {{- end }}
{{- end }}

{{/*
How long a pod must have been ready before the next one is replaced. Callers learn of a new replica within 22 seconds;
until they have, the old ones must stay.
*/}}
{{- define "podium.minReadyS" -}}
25
{{- end }}

{{/* How long a service may take to stop, of its values: what it needs by its own settings, and a little more. */}}
{{- define "podium.graceS" -}}
{{ add .drainDelayS .drainS 10 }}
{{- end }}

{{/* What every container of a service has but its name, ports and settings of its own. Takes image besides. */}}
{{- define "podium.container" -}}
image: {{ include "podium.image" (dict "root" .root "image" (.image | default .values.image) "component" .component "imageValue" .imageValue) }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- include "podium.securityContext" . | nindent 2 }}
resources:
  {{- toYaml .values.resources | nindent 2 }}
{{- end }}

{{/* Probes over HTTP: the kubelet's gRPC probe cannot speak mutual TLS. Takes startupS: seconds a start may take. */}}
{{- define "podium.probes" -}}
startupProbe:
  httpGet: {path: /livez, port: ops}
  periodSeconds: 1
  timeoutSeconds: 2
  failureThreshold: {{ .startupS }}
livenessProbe:
  httpGet: {path: /livez, port: ops}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: ops}
  periodSeconds: 2
  timeoutSeconds: 2
  failureThreshold: 2
{{- end }}

{{/* Settings that every service is told, and those of its values' `env`. Takes settings: own ones, by name. */}}
{{- define "podium.env" -}}
{{- $prefix := printf "PODIUM_%s_" (upper .component) }}
{{- $own := dict
  "TLS_CERT_FILE" "/etc/podium/tls/tls.crt"
  "TLS_KEY_FILE" "/etc/podium/tls/tls.key"
  "TLS_CA_FILE" "/etc/podium/tls/ca.crt"
  "OPS_LISTEN" "0.0.0.0:9464"
  "LOG_LEVEL" .root.Values.logLevel
}}
{{- with .root.Values.otlp.endpoint }}
{{- $_ := set $own "OTLP_ENDPOINT" . }}
{{- end }}
{{- with .root.Values.otlp.serverName }}
{{- $_ := set $own "OTLP_SERVER_NAME" . }}
{{- end }}
{{- if .root.Values.otlp.insecure }}
{{- $_ := set $own "OTLP_INSECURE" "true" }}
{{- end }}
{{- $lines := list }}
{{- range $name, $value := merge (dict) .values.env .settings $own }}
{{- $lines = append $lines (printf "- {name: %s%s, value: %s}" $prefix $name ($value | toString | quote)) }}
{{- end }}
{{- join "\n" $lines }}
{{- end }}

{{- define "podium.mounts" -}}
- {name: tls, mountPath: /etc/podium/tls, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- end }}

{{- define "podium.volumes" -}}
- name: tls
  secret:
    secretName: {{ include "podium.tlsSecret" . }}
    defaultMode: 0440
- name: tmp
  emptyDir: {sizeLimit: 256Mi}
{{- end }}

{{- define "podium.configMount" -}}
- {name: config, mountPath: /etc/podium/config, readOnly: true}
{{- end }}

{{- define "podium.configVolume" -}}
- name: config
  configMap:
    name: {{ .root.Values.existingConfigMap | default (printf "%s-config" (include "podium.fullname" .root)) }}
{{- end }}
