// Runs the shared step as a pipeline would, with Jenkins' own steps done here: arguments are the step's file, the folder
// of its resources, a file with the options of each call as JSON, and the file for the answers. The workspace is the
// current folder.
import groovy.json.JsonOutput
import groovy.json.JsonSlurper

class StepFailed extends RuntimeException {
    StepFailed(String message) { super(message) }
}

def (file, resources, asked, answered) = args.collect { new File(it).absoluteFile }
def told = [:]

def steps = [
    env: System.getenv(),
    error: { message -> throw new StepFailed(message.toString()) },
    unstable: { message -> told.unstable << message.toString() },
    libraryResource: { path -> new File(resources, path).text },
    archiveArtifacts: { Map given -> told.archived << given.artifacts },
    sh: { Map given ->
        // With a first line that names an interpreter, Jenkins runs the file by it; without one, as sh -xe.
        def script = given.script.toString()
        def first = script.readLines()[0]
        def place = File.createTempFile('durable', '.sh')
        place.text = script
        told.scripts++
        def command = (first.startsWith('#!') ? first[2..-1].split(' ') as List : ['sh', '-xe']) + place.path
        def code = new ProcessBuilder(command).inheritIO().start().waitFor()
        if (code && !given.returnStatus) { throw new StepFailed("script returned exit code ${code}") }
        given.returnStatus ? code : null
    },
]

def answers = new JsonSlurper().parse(asked).collect { options ->
    told = [error: null, returned: null, unstable: [], archived: [], scripts: 0]
    try {
        told.returned = new GroovyShell(new Binding(steps)).parse(file).call(options)
    } catch (StepFailed failed) {
        told.error = failed.message
    }
    told
}
answered.text = JsonOutput.toJson(answers)
