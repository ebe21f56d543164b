// A Jenkins shared step: runs a job of named steps and keeps each finished one, so that a later try does only what is left.
// How to use it, and what a retry does: docs/other-ci.md.
//
//   checkpointRun(store: 's3://acme-ci/checkpoints', steps: '''
//     - id: build
//       run: make -j4
//   ''')

def call(Map options = [:]) {
    def texts = ['steps', 'file', 'job', 'store', 'scope', 'exclude', 'jobs', 'budget', 'arguments', 'version']
    def ours = ['logs', 'onBudget']
    def unknown = options.keySet().findAll { name -> !(name in texts + ours) }
    if (unknown) {
        error "checkpointRun: there is no option ${unknown.join(', ')}; there are ${(texts + ours).join(', ')}"
    }
    def logs = chosen(options, 'logs', ['on-failure', 'always', 'never'])
    def onBudget = chosen(options, 'onBudget', ['unstable', 'failure'])
    if (!options.store) {
        error 'checkpointRun: the option store is missing, for example s3://bucket/prefix'
    }

    // Re-running a build in Jenkins makes a new one, so what is kept serves the commit, not the build.
    def values = [scope: 'commit'] + options.findAll { name, value -> name in texts && value != null }
    def variables = values.collectEntries { name, value -> ["CPR_${name.toUpperCase()}".toString(), lines(value)] }
    variables.CPR_LOGS = logs == 'never' ? '' : 'checkpoint-run-logs'

    // As words of the shell, since withEnv would replace what looks like a variable in them.
    def words = variables.collect { name, value -> "export ${name}=${quoted(value)}" }.join('\n')
    def script = libraryResource('checkpoint-run/run.sh')
    def status = 1
    try {
        status = sh(label: 'checkpoint-run', script: "#!/bin/sh\n${words}\n${script}", returnStatus: true)
    } finally {
        if (logs == 'always' || (logs == 'on-failure' && status != 0)) {
            archiveArtifacts artifacts: 'checkpoint-run-logs/**', allowEmptyArchive: true
        }
    }
    if (status == 75 && onBudget == 'unstable') {
        unstable 'checkpoint-run: stopped by its budget; build again to go on from here'
    } else if (status != 0) {
        error "checkpoint-run: exit code ${status}"
    }
    return status
}

private String chosen(Map options, String name, List words) {
    def word = options.get(name) ?: words[0]
    if (!(word in words)) {
        error "checkpointRun: ${name}: '${word}' is none of ${words.join(', ')}"
    }
    return word
}

private String lines(value) {
    return value instanceof Collection ? value.join('\n') : value.toString()
}

private String quoted(String value) {
    return "'" + value.replace("'", "'\\''") + "'"
}
